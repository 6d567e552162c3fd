// SPDX-License-Identifier: BSD-3-Clause
// How many entries a folder has.
#pragma once

#include <dirent.h>

inline int entries(const char* folder) {
  int found = 0;
  DIR* const directory = opendir(folder);
  while (directory != nullptr && readdir(directory) != nullptr) ++found;
  if (directory != nullptr) closedir(directory);
  return found;
}
