// SPDX-License-Identifier: BSD-3-Clause
// A library for LD_PRELOAD: this process sees the cores that TEST_CORES says, whatever the machine
// has. "0-2/4" are the cores 0 to 2 of 4.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int read_cores(int* first, int* last) {
  int all = 0;
  const char* text = getenv("TEST_CORES");
  return text != NULL && sscanf(text, "%d-%d/%d", first, last, &all) == 3 ? all : 0;
}

int sched_getaffinity(pid_t process, size_t size, cpu_set_t* cores) {
  int first = 0, last = 0;
  if (read_cores(&first, &last) == 0) {
    CPU_ZERO_S(size, cores);
    return syscall(SYS_sched_getaffinity, process, size, cores) < 0 ? -1 : 0;
  }
  CPU_ZERO_S(size, cores);
  for (int core = first; core <= last; ++core) CPU_SET_S((size_t)core, size, cores);
  return 0;
}

long sysconf(int name) {
  static long (*next)(int);
  int first = 0, last = 0;
  const int all = read_cores(&first, &last);
  if (all > 0 && (name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF)) return all;
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "sysconf");
  return next(name);
}
