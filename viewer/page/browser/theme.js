// Dark or light theme: the preference of the system until the reader chooses. Printing is light.

import { h } from "./dom.js";
import { notify } from "./shared.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
let chosen = null;

function apply(theme = chosen ?? (dark.matches ? "dark" : "light")) {
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", theme === "dark" ? "Switch to light colours" : "Switch to dark colours");
    notify("theme");
}

export const button = h("button", {
    type: "button",
    class: "theme",
    click: () => {
        chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
        apply();
    },
});

dark.addEventListener("change", () => apply());
addEventListener("beforeprint", () => apply("light"));
addEventListener("afterprint", () => apply());
apply();
