// What protobuf says by itself; without its headers, for main.cc of programs.
#ifndef COPPICE_PROTO_MESSAGE_LOG_H_
#define COPPICE_PROTO_MESSAGE_LOG_H_

namespace coppice {

// What protobuf says of messages that it cannot read or write goes nowhere: whoever reads or writes
// them has a status for that. It would go to stderr, as often as somebody sends such a message. For
// main.cc of a program.
void SilenceMessageLog();

}  // namespace coppice

#endif  // COPPICE_PROTO_MESSAGE_LOG_H_
