// SPDX-License-Identifier: BSD-3-Clause
// Two remedies for jobs of MPICH over UCX in tests; scripts/run-mpi and scripts/emulated-hosts
// preload this library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static unsigned poll_network(void* worker) {
  static unsigned (*progress)(void*) = NULL;
  if (progress == NULL) *(void**)&progress = dlsym(RTLD_NEXT, "ucp_worker_progress");
  return progress(worker);
}

// Lets ranks that share a core give it up while they wait. MPICH polls without end, and has no
// setting as Open MPI's mpi_yield_when_idle: 8 ranks on 4 cores take 20 times as long as they need.
// This polls as UCX does, and sleeps after some polls in vain.
static unsigned poll_politely(void* worker) {
  static int polls_in_vain = 0;  // ranks poll in one thread; a lost count does no harm
  const unsigned events = poll_network(worker);
  if (events != 0) {
    polls_in_vain = 0;
  } else if (++polls_in_vain > 20) {
    const struct timespec shortest = {0, 1000};
    nanosleep(&shortest, NULL);
  }
  return events;
}

#if !defined(MPICH_NUMVERSION) || MPICH_NUMVERSION >= 40200000

unsigned ucp_worker_progress(void* worker) { return poll_politely(worker); }

#else

// Keeps MPI_Finalize from hanging where a job has several hosts joined by TCP (tests/hosts/
// finalizes_early.c hangs without it). MPICH before 4.2 disconnects from all ranks there, and then
// waits at a barrier of the launcher, where it no longer polls UCX. But over TCP, disconnecting
// waits for an answer of the other rank, and that never comes if it is at the barrier already. So
// here a rank polls until all have disconnected: at one more barrier, by the launcher's protocol
// (PMI 1).

enum { not_yet, disconnecting, disconnected };
static int state = not_yet;
static void** requests = NULL;  // of the disconnecting
static size_t request_count = 0;

static void poll_until_all_have_disconnected(void* worker) {
  const char* descriptor = getenv("PMI_FD");
  if (descriptor == NULL) return;  // not started by a launcher
  static const char request[] = "cmd=barrier_in\n", answer[] = "cmd=barrier_out\n";
  struct pollfd launcher = {.fd = atoi(descriptor), .events = POLLIN};
  char line[64] = "";
  size_t length = 0;
  if (write(launcher.fd, request, strlen(request)) == (ssize_t)strlen(request)) {
    while (poll(&launcher, 1, 0) == 0) poll_politely(worker);
    while (length + 1 < sizeof line && read(launcher.fd, line + length, 1) == 1)
      if (line[length++] == '\n') break;
  }
  if (strcmp(line, answer) != 0)
    fprintf(stderr, "mpich_idle: the launcher's answer to its barrier is '%s'\n", line);
}

void* ucp_disconnect_nb(void* endpoint) {  // MPICH calls it in MPI_Finalize alone
  static void* (*disconnect)(void*) = NULL;
  if (disconnect == NULL) *(void**)&disconnect = dlsym(RTLD_NEXT, "ucp_disconnect_nb");
  state = disconnecting;
  void* request = disconnect(endpoint);
  // UCX's UCS_PTR_IS_PTR: 0 is success, and the last 100 values are errors.
  if (request != NULL && (uintptr_t)request < (uintptr_t)-100) {
    void** grown = realloc(requests, (request_count + 1) * sizeof *requests);
    if (grown == NULL) abort();
    requests = grown;
    requests[request_count++] = request;
  }
  return request;
}

unsigned ucp_worker_progress(void* worker) {
  static int (*is_completed)(void*) = NULL;
  const unsigned events = poll_politely(worker);
  if (state == disconnecting) {
    if (is_completed == NULL) *(void**)&is_completed = dlsym(RTLD_NEXT, "ucp_request_is_completed");
    size_t completed = 0;
    while (completed < request_count && is_completed(requests[completed])) ++completed;
    if (completed == request_count) {
      state = disconnected;
      poll_until_all_have_disconnected(worker);
      free(requests);
    }
  }
  return events;
}
#endif
