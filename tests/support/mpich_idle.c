// Lets ranks that share a core give it up while they wait, in jobs of MPICH over UCX.
//
// MPICH polls without end, and has no setting as Open MPI's mpi_yield_when_idle: 8 ranks on 4 cores
// take 20 times as long as they need. scripts/run-mpi preloads this library in tests. It replaces
// UCX's progress function by one that sleeps after some polls in vain.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

unsigned ucp_worker_progress(void* worker) {
  static unsigned (*progress)(void*) = NULL;
  static int polls_in_vain = 0;  // ranks poll in one thread; a lost count does no harm
  if (progress == NULL) *(void**)&progress = dlsym(RTLD_NEXT, "ucp_worker_progress");
  const unsigned events = progress(worker);
  if (events != 0) {
    polls_in_vain = 0;
  } else if (++polls_in_vain > 20) {
    const struct timespec shortest = {0, 1000};
    nanosleep(&shortest, NULL);
  }
  return events;
}
