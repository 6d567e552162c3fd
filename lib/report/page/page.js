// What timelines and layouts share: the data, elements, texts, and the theme.

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

// Texts of the program are only set as text, and never become markup.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function button(attributes, press, ...children) {
  const made = element("button", attributes, ...children);
  made.addEventListener("click", press);
  return made;
}

const announce = (text) => ($("status").textContent = text);
const count = (number, one, many = one + "s") => `${number} ${number === 1 ? one : many}`;

// The kind of the page is the name of its style sheet and of its template.
function startPage(kind, title, notes) {
  for (const other of ["timeline", "layout"]) if (other !== kind) $(other + "-style").remove();
  document.body.prepend($(kind).content);
  document.title = title;
  $("notes").append(...notes.map((note) => element("li", {}, note)));
}

// Both themes have their own colours, of which `changed` is told.
function startTheme(changed) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const set = (isDark) => {
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    changed();
  };
  dark.addEventListener("change", () => set(dark.matches));
  $("theme").addEventListener("click", () => set(document.documentElement.dataset.theme !== "dark"));
  set(dark.matches);
}
