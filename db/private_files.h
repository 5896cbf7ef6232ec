// The database's files are their owner's alone to read and to write: they hold who runs what, and
// patterns of programs, and a reader could hold a lock that stops the daemon.
#ifndef COPPICE_DB_PRIVATE_FILES_H_
#define COPPICE_DB_PRIVATE_FILES_H_

#include <string>

namespace coppice {

// Makes `database`, empty and with mode 0600, if it is not there; SQLite gives the mode of it to
// the files beside it. Takes away what others may do to those that are there (-wal, -shm and .lock,
// too), as releases before left them, and says so in the log, or why it cannot. Before SQLite opens
// the database, as a close would take its locks away.
void KeepPrivate(const std::string& database);

}  // namespace coppice

#endif  // COPPICE_DB_PRIVATE_FILES_H_
