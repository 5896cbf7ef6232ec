// A descriptor of this process alone: every child of fork() closes its copy at once. Without that
// the agent would not see that a process is gone, or has closed its client, while a child of it
// lives.
//
// Opening and closing exclude fork() (pthread_atfork), so that a child neither misses one nor
// closes a number that is another's by now.
#ifndef COPPICE_CLIENT_LIBRARY_OWN_DESCRIPTOR_H_
#define COPPICE_CLIENT_LIBRARY_OWN_DESCRIPTOR_H_

namespace coppice {

class OwnDescriptor final {
 public:
  OwnDescriptor() = default;
  ~OwnDescriptor();
  OwnDescriptor(const OwnDescriptor&) = delete;
  OwnDescriptor& operator=(const OwnDescriptor&) = delete;

  // Once. False: there is none, errno says why.
  bool OpenUnixSocket();
  bool OpenEvent();

  // -1: not open, or this is a child of the process that opened it.
  int get() const { return fd_; }

 private:
  bool Keep(int fd);
  static void Watch();
  static void CloseAll();

  int fd_ = -1;
  OwnDescriptor* before_ = nullptr;  // of all that are open
  OwnDescriptor* after_ = nullptr;
};

}  // namespace coppice

#endif  // COPPICE_CLIENT_LIBRARY_OWN_DESCRIPTOR_H_
