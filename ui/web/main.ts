// The entry of the web page.

import "../views/style.css";
import { start } from "../views/app";
import { hostOf } from "./hosts";

const root = document.getElementById("app");
if (root) void Promise.resolve().then(() => start(root, () => hostOf(document)));
