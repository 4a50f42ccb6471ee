// Starts the page.
import { render } from "preact";
import { App } from "./app";
import * as live from "./live";
import * as theme from "./theme";
import "./style/base.css";
import "./style/shell.css";
import "./style/parts.css";
import "./style/tables.css";
import "./style/logs.css";
import "./style/timeline.css";

theme.start();
live.start();
render(<App />, document.getElementById("page")!);
