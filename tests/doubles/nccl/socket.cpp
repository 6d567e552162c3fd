// SPDX-License-Identifier: BSD-3-Clause
#include "socket.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "common/settings.hpp"

namespace fake {
namespace {

// A leading zero byte: the name lives in the kernel only and goes with its socket.
socklen_t fill_address(sockaddr_un& address, const std::string& name) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

int new_socket() { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0); }

}  // namespace

int listen_at(const std::string& name) {
  sockaddr_un address;
  const socklen_t length = fill_address(address, name);
  const int descriptor = new_socket();
  if (descriptor < 0) return -1;
  if (bind(descriptor, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
      listen(descriptor, 4096) == 0)
    return descriptor;
  close(descriptor);
  return -1;
}

int connect_to(const std::string& name) {
  sockaddr_un address;
  const socklen_t length = fill_address(address, name);
  const int descriptor = new_socket();
  if (descriptor < 0) return -1;
  if (connect(descriptor, reinterpret_cast<sockaddr*>(&address), length) == 0) return descriptor;
  close(descriptor);
  return -1;
}

bool same_user(int connection) {
  ucred who{};
  socklen_t length = sizeof who;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 &&
         (who.uid == geteuid() || broken("same_user"));
}

bool send_request(int connection, const Request& request) {
  return send(connection, &request, sizeof request, MSG_NOSIGNAL) == sizeof request;
}

bool receive_request(int connection, Request& request) {
  return recv(connection, &request, sizeof request, 0) == sizeof request;
}

bool send_answer(int connection, const Answer& answer, int descriptor) {
  iovec part{const_cast<Answer*>(&answer), sizeof answer};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  return sendmsg(connection, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof answer);
}

bool receive_answer(int connection, Answer& answer, int& descriptor) {
  iovec part{&answer, sizeof answer};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  descriptor = -1;
  if (recvmsg(connection, &message, MSG_CMSG_CLOEXEC) != static_cast<ssize_t>(sizeof answer))
    return false;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header))
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
      std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return true;
}

}  // namespace fake
