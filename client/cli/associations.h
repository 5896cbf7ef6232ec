// Slurm's associations, as sacctmgr prints them to be read by programs: which account is within
// which, and who is in it. Columns are found by their headings; a text may have several tables,
// each with its own:
//
//   Cluster|Account|User|ParentName      sacctmgr -P show assoc
//   copse|root||                           format=cluster,account,user,parentname
//   copse|physics||root
//   copse|physics|ada|
//   Cluster|User|Def Acct                sacctmgr -P show user withassoc
//   copse|ada|physics                      format=cluster,user,defaultaccount
//
// A function of text: what the daemon has is not known here.
#ifndef COPPICE_CLIENT_CLI_ASSOCIATIONS_H_
#define COPPICE_CLIENT_CLI_ASSOCIATIONS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coppice/v1/admin.pb.h"

namespace coppice {

// The accounts of one cluster by name, without tenants, and their users by user and account; who is
// in one account only has it as default. `cluster` may be empty if the text names one only. Each
// parent, and each account that a user is in or has as default, is among the accounts, so that a
// text which was cut is told from a whole one. INVALID_ARGUMENT, with `file` and the line: what is
// no such table, or says of an account or a user two things. NOT_FOUND, with `file`: no account at
// all, or none of that cluster. O(letters).
absl::StatusOr<v1::ImportAccountsRequest> ParseAssociations(absl::string_view text,
                                                            absl::string_view file,
                                                            absl::string_view cluster);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_ASSOCIATIONS_H_
