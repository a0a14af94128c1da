// The entry of the web page: a profile, or an answer about changes.

import "../views/style.css";
import { start } from "../views/app";
import { showChanges } from "../views/changes/alone";
import { changesIn, hostOf } from "./hosts";

const root = document.getElementById("app");
if (root)
  void Promise.resolve().then(() => {
    const changes = changesIn(document);
    return changes ? showChanges(root, changes) : start(root, () => hostOf(document));
  });
