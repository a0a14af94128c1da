// A fault of one page, as of a summary that somebody else has written, costs that page alone.

import { Component, type ComponentChildren } from "preact";
import { visible } from "../model/units";
import { Nothing } from "./widgets";

export class Guard extends Component<{ children: ComponentChildren }, { said: string }> {
  override state = { said: "" };

  override componentDidCatch(error: unknown): void {
    this.setState({ said: error instanceof Error ? error.message : String(error) });
  }

  override render(): ComponentChildren {
    const { said } = this.state;
    return said ? (
      <Nothing>
        This page cannot be shown: {visible(said)}. The other pages can; `leadline analyze --save` makes a new summary.
      </Nothing>
    ) : (
      this.props.children
    );
  }
}
