// Nothing: see lib/meson.build.
