#!/usr/bin/env python3
"""Shows that the tests of the doubles test something: takes each behaviour out (FAKE_BREAK) and
demands that the test case written for it fails.

usage: prove.py TEST_FAKE_CUDA TEST_FAKE_NCCL [behaviour ...]
"""
import concurrent.futures
import contextlib
import glob
import os
import re
import subprocess
import sys

CUDA = {  # behaviour: pattern of the test case that must fail
    "no_driver": "without a driver the count*",
    "old_driver": "a driver of an older major release*",
    "driver_error": "a driver's error is*",
    "visible_devices": "visible devices*",
    "given_capability": "the compute capability can be given*",
    "given_uuids": "the UUIDs can be given*",
    "last_error": "the last error stays*",
    "stream_device": "a stream or event of another device*",
    "memory_counted": "memory is counted*",
    "range_check": "copies outside an allocation*",
    "pageable_copy": "a pageable source*",
    "async_streams": "calls return before the work is done*",
    "fifo": "calls return before the work is done*",
    "delay": "every operation can be slowed down",
    "wait_event": "two streams do not wait*",
    "event_query": "events tell when*",
    "default_stream_order": "the default stream and blocking streams*",
    "per_thread_stream": "cudaStreamPerThread is*",
    "implicit_capture": "the default stream cannot be used*",
    "malloc_waits": "an allocation waits*",
    "lazy_loading": "the first launch of a kernel*",
    "pool_threshold": "a pool gives back*",
    "pool_dependencies": "a pool may make a stream wait*",
    "max_pitch": "a copy in two dimensions*",
    "free_waits": "free waits for queued work*",
    "pool_free": "free of memory from a pool waits for nothing*",
    "capture_records": "a capture records*",
    "capture_join": "a capture spreads*",
    "graph_objects": "a user object lives*",
    "capture_guard": "waiting for a captured stream*",
    "query_guard": "questions to any stream or event*",
    "memory_nodes": "memory that a capture allocates*",
    "launch_queue": "a launch waits while*",
    "contexts": "a context is created on the current device*",
    "device_guard": "a wait for the device spoils*",
    "pool_guard": "a pool cannot be created or changed*",
}
NCCL = {
    "rank_count": "a wrong number of ranks*",
    "duplicate_rank": "a rank that comes twice*",
    "duplicate_gpu": "two ranks on one device*",
    "host_id": "two ranks on one device*",
    "deadline": "a rank that never comes*",
    "comm_id": "NCCL_COMM_ID makes*",
    "root_ends": "an ID costs a thread*",
    "same_user": "another user's processes*",
    "several_ids": "several IDs for one*",
    "side_by_side": "several inits of one group*",
    "config_size": "a config is read by its own size*",
    "config_magic": "a config is read by its own size*",
    "config_before_defaults": "a lower limit of thread blocks*",
    "name_kept": "commName is read late*",
    "reduction_ops": "reductions on every type*",
    "rounded_factor": "averages of floats are sums of products*",
    "returns_before_completion": "a collective returns before*",
    "lazy_connect": "the first operation of an algorithm waits*",
    "issue_order": "operations of one communicator keep*",
    "fp8_capability": "8-bit floats are reduced only if*",
    "new_types": "types that a version does not have*",
    "buffer_check": "buffers must be device memory*",
    "comm_device": "a wrong device is refused*",
    "unmatched_end": "an end without a start*",
    "group_per_thread": "the depth of groups*",
    "deferred_operations": "operations of a group start*",
    "hash_order": "communicators of a group start in the order of their hashes*",
    "size_order": "operations of a group are sorted by size*",
    "shared_kernel": "an operation of a group that uses what another*",
    "joint_progress": "sends and receives of a group*",
    "message_check": "a receive of another length*",
    "both_registered": "a message whose memory is registered on one side*",
    "split_order": "a split orders by key*",
    "split_nocolor": "a split orders by key*",
    "split_inherits": "a split without config*",
    "capture_records": "collectives are captured*",
    "graph_usage_mode": "a communicator without graphs*",
    "graphs_pin": "collectives are captured*",
    "in_progress": "a non-blocking communicator is in progress*",
    "early_reuse": "a non-blocking communicator is in progress*",
    "mixed_group": "the last operation of a group decides*",
    "sticky_errors": "a wrong argument is the error*",
    "helper_threads": "a call on a non-blocking communicator starts*",
    "destroy_after_error": "the destruction of a communicator with an error*",
    "shared_abort_flag": "an abort of a child that shares*",
    "comm_blocking": "NCCL_COMM_BLOCKING decides*",
    "sequence_check": "ranks that issue different*",
    "gone_process": "a process that dies*",
    "nameless": "killed jobs leave nothing*",
    "abort_spreads": "peers on the same host learn nothing*",
    "flags_are_local": "peers on the same host learn nothing*",
    "one_queue": "until 2.26 a thread has one queue*",
    "poll_joins": "before 2.26 a poll does not join*",
    "launch_query": "an operation beside captures asks about an event*",
    "jobs_together": "a group of inits succeeds or fails*",
    "abort_drains": "an abort waits for what its operations queue behind*",
    "ends_at_once": "before 2.22, a group of aborts*",
    "kernels_compete": "kernels that do not fit*",
    "abort_cancels": "an abort ends this rank's own*",
    "faults": "faults on order*",
    "use_after_finalize": "after finalize only*",
    "finalize_meets": "finalize waits for every rank",
    "destroy_waits": "finalize and destroy wait*",
    "window_meets": "registered memory*",
    "windows_at_rest": "registered memory*",
    "unmap": "NCCL's memory is freed at once*",
    "cta_policies": "the policy of copy engines came*",
    "release": "hundreds of communicators*",
}


def attempt(job):
    program, behaviour, pattern = job
    settings = dict(os.environ, FAKE_BREAK=behaviour, RANKS_TIME_LIMIT="2", FAKE_NCCL_TIMEOUT="1")
    # A pattern's comma would end it.
    run = subprocess.run([program, "--test-case=" + pattern.replace(",", "*"), "--no-colors"], env=settings,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    ran = re.search(r"test cases: +(\d+)", run.stdout)
    if not ran or ran.group(1) == "0":
        return behaviour, "no test case matches " + pattern
    if behaviour == "same_user" and "not run" in run.stdout:
        return behaviour, None
    return behaviour, None if run.returncode != 0 else "still passes: " + pattern


def main():
    cuda, nccl = sys.argv[1:3]
    chosen = set(sys.argv[3:])
    jobs = [(cuda, *entry) for entry in CUDA.items()] + [(nccl, *entry) for entry in NCCL.items()]
    jobs = [job for job in jobs if not chosen or job[1] in chosen]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        problems = [answer for answer in pool.map(attempt, jobs) if answer[1]]
    # Some behaviours order what happens at the same time: without them a busy machine may keep the order once by chance.
    jobs_of = {job[1]: job for job in jobs}
    problems = [again for problem in problems if (again := attempt(jobs_of[problem[0]]))[1]]
    for left in glob.glob("/dev/shm/rankmesh-fake-broken-*"):
        with contextlib.suppress(OSError):  # of another user, or of another run that has just removed it
            os.unlink(left)
    for behaviour, problem in problems:
        print(f"{behaviour}: {problem}")
    print(f"{len(jobs) - len(problems)} of {len(jobs)} behaviours: their test fails without them")
    return 1 if problems else 0


sys.exit(main())
