# SPDX-License-Identifier: BSD-3-Clause
# How Sphinx builds the site from the pages that docs/site/stage.py has collected. scripts/docs runs it.
import os

project = "rankmesh"
version = release = os.environ.get("RANKMESH_VERSION", "")
extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["conf.py", "raw"]
myst_heading_anchors = 4  # links such as programs.md#errors name headings, as on GitHub
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["myst.header"]  # some READMEs begin with a smaller heading
html_theme = "furo"
html_title = "rankmesh"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_copy_source = html_show_sourcelink = html_show_copyright = html_show_sphinx = False
pygments_style = "tango"
pygments_dark_style = "monokai"
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = "$ "
