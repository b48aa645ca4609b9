// The console begins here.

import { App } from "./shell/app.js";
import { html, render } from "./shell/html.js";

render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById("console")));
