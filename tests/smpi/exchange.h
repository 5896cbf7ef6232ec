// One rank's messages to its neighbours, timed: what the programs here share. They compute nothing,
// so that the simulated time is that of communication alone.
#ifndef COPPICE_TESTS_SMPI_EXCHANGE_H_
#define COPPICE_TESTS_SMPI_EXCHANGE_H_

#include <string>
#include <vector>

struct Message {
  int peer;
  int bytes;
};

// Sends `sent` and receives `received` in each of `rounds` rounds, the first of which all ranks
// begin at once; a round ends on a rank when its own messages are through, so that ranks wait for
// their neighbours only. Prints from rank 0 the seconds of a round, the slowest rank's, as
// "seconds 1.25e-05". Collective; the peers' lists must agree.
void TimeRounds(const std::vector<Message>& sent, const std::vector<Message>& received, int rounds);

// Writes what all ranks send in a round, bytes by sender and receiver, as a Matrix Market file.
// Collective.
void WritePattern(const std::string& path, const std::vector<Message>& sent);

// Ends the calling rank, with `message` on standard error if it is rank 0: for what all ranks find,
// or none waits for.
[[noreturn]] void Refuse(const std::string& message);

#endif  // COPPICE_TESTS_SMPI_EXCHANGE_H_
