// SPDX-License-Identifier: BSD-3-Clause
// How many entries a folder has.
#pragma once

#include <dirent.h>

#include <cstring>

// Counts the entries whose names begin with `prefix`: other programs use the folder, too.
inline int entries(const char* folder, const char* prefix = "") {
  int found = 0;
  DIR* const directory = opendir(folder);
  if (directory == nullptr) return 0;
  while (const dirent* const entry = readdir(directory))
    if (std::strncmp(entry->d_name, prefix, std::strlen(prefix)) == 0) ++found;
  closedir(directory);
  return found;
}
