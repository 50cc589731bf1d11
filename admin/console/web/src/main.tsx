import { render } from "preact";
import { paused, startLive } from "./api/live";
import { startLang } from "./i18n";
import { startClock } from "./lib/format";
import { startKeys } from "./lib/keys";
import { startRouter } from "./lib/router";
import { App } from "./shell/app";
import { helpOpen, paletteOpen } from "./shell/state";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/header.css";
import "./styles/controls.css";
import "./styles/boxes.css";
import "./styles/parts.css";
import "./styles/dialog.css";
import "./styles/table.css";
import "./styles/pages.css";
import "./styles/message.css";
import "./styles/dead.css";
import "./styles/signin.css";
import "./styles/system.css";
import "./styles/narrow.css";

startRouter();
startClock();
startLive();
startKeys({
  palette: () => {
    paletteOpen.value = !paletteOpen.value;
  },
  help: () => {
    helpOpen.value = true;
  },
  pause: () => {
    paused.value = !paused.value;
  },
});
void startLang().then(() => render(<App />, document.getElementById("app")!));
