// SPDX-License-Identifier: BSD-3-Clause
// The local sockets of the rendezvous: named without a file, open to the same user only.
#pragma once

#include <string>

namespace fake {

struct Request {
  unsigned magic;
  int ranks;
  int rank;
  int check_ins;      // how many ranks come to this root
  int wants_segment;  // not at the further IDs of a scalable init
};

struct Answer {
  int code;  // an ncclResult_t
  char text[480];
};

int listen_at(const std::string& name);   // a descriptor, or -1 with errno
int connect_to(const std::string& name);  // a descriptor, or -1 with errno
bool same_user(int connection);
bool send_request(int connection, const Request& request);
bool receive_request(int connection, Request& request);
bool send_answer(int connection, const Answer& answer, int descriptor);  // descriptor may be -1
bool receive_answer(int connection, Answer& answer, int& descriptor);

}  // namespace fake
