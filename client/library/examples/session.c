/* A whole session with libcoppice in C99: a job, a watch, a tree, and a better order of the ranks.
 *
 *   cc -std=c99 session.c -lcoppice -lpthread && ./a.out node1 node1 node2 node2
 *
 * Arguments: the host of each rank. The agent is $COPPICE_AGENT, else the usual one. Exit status 0:
 * all went well; 1: something failed, and stderr says what.
 */
#include <coppice/coppice.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* What the watch has told, for the thread that waits for it. */
struct seen {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint64_t granted, released; /* trees */
};

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, coppice_last_error());
  return 1;
}

static void on_change(void* context, coppice_change change, uint64_t tree, uint32_t revision,
                      const char* reason) {
  struct seen* seen = context;
  printf("watch: change %d of tree %" PRIu64 ", revision %" PRIu32 " %s\n", (int)change, tree,
         revision, reason);
  pthread_mutex_lock(&seen->mutex);
  if (change == COPPICE_CHANGE_GRANTED || change == COPPICE_CHANGE_PRESENT) seen->granted = tree;
  if (change == COPPICE_CHANGE_RELEASED) seen->released = tree;
  pthread_cond_broadcast(&seen->changed);
  pthread_mutex_unlock(&seen->mutex);
}

static int use_tree(coppice_client* client, uint64_t job, struct seen* seen) {
  coppice_tree_request request = COPPICE_INIT(request);
  coppice_tree* tree = NULL;
  uint64_t id = 0;
  uint32_t node = 0;
  request.job = job;
  request.operation = COPPICE_OPERATION_ALLREDUCE;
  request.bytes = 64;
  if (coppice_tree_create(client, &request, &tree) != COPPICE_OK) return failed("tree");
  id = coppice_tree_id(tree);
  printf("tree %" PRIu64 " of type %d for %" PRIu32 " ranks, %.2f us: %s\n", id,
         (int)coppice_tree_kind(tree), coppice_tree_ranks(tree), coppice_tree_predicted_us(tree),
         coppice_tree_reason(tree));
  for (node = 0; node < coppice_tree_nodes(tree); ++node) {
    printf("  node %" PRIu32 " hangs on %" PRId32 "\n", node, coppice_tree_parents(tree)[node]);
  }
  coppice_tree_free(tree);
  if (coppice_tree_release(client, id) != COPPICE_OK) return failed("release");
  pthread_mutex_lock(&seen->mutex);
  while (seen->granted != id || seen->released != id) {
    pthread_cond_wait(&seen->changed, &seen->mutex);
  }
  pthread_mutex_unlock(&seen->mutex);
  return 0;
}

/* Rank i talks to the rank half the job away, which a better order puts beside it. */
static int find_order(coppice_client* client, uint64_t job, uint32_t ranks) {
  coppice_map_request request = COPPICE_INIT(request);
  coppice_order* order = NULL;
  uint32_t* from = calloc(ranks, sizeof *from);
  uint32_t* to = calloc(ranks, sizeof *to);
  double* bytes = calloc(ranks, sizeof *bytes);
  uint32_t i = 0;
  int result = 1;
  if (from != NULL && to != NULL && bytes != NULL) {
    for (i = 0; i < ranks; ++i) {
      from[i] = i;
      to[i] = (i + ranks / 2) % ranks;
      bytes[i] = 1e6;
    }
    request.job = job;
    request.rank_count = ranks;
    request.pair_count = ranks;
    request.from = from;
    request.to = to;
    request.bytes = bytes;
    request.budget_ms = 200;
    if (coppice_map(client, &request, &order) == COPPICE_OK) {
      printf("order of score %.3f: %s\n", coppice_order_score(order), coppice_order_reason(order));
      for (i = 0; i < coppice_order_ranks(order); ++i) {
        printf("  rank %" PRIu32 " to position %" PRIu32 "\n", i,
               coppice_order_positions(order)[i]);
      }
      coppice_order_free(order);
      result = 0;
    } else {
      failed("map");
    }
  }
  free(from);
  free(to);
  free(bytes);
  return result;
}

static int run(coppice_client* client, const char* const* endpoints, uint32_t count,
               struct seen* seen) {
  coppice_capabilities node = COPPICE_INIT(node);
  coppice_job_request request = COPPICE_INIT(request);
  uint64_t job = 0;
  int result = 0;
  if (coppice_query(client, &node) != COPPICE_OK) return failed("agent");
  printf("agent %s of %s with %" PRIu32 " cores\n", node.agent_version, node.host, node.cores);
  request.display_name = "session.c";
  request.endpoints = endpoints;
  request.endpoint_count = count;
  request.hold = 1; /* should this process die, the agent ends the job */
  if (coppice_job_register(client, &request, &job) != COPPICE_OK) return failed("job");
  printf("job %" PRIu64 "\n", job);
  if (coppice_watch_trees(client, job, on_change, seen) != COPPICE_OK) result = failed("watch");
  if (result == 0) result = use_tree(client, job, seen);
  if (result == 0) result = find_order(client, job, count);
  if (coppice_job_end(client, job) != COPPICE_OK) result = failed("end");
  return result;
}

int main(int argc, char** argv) {
  struct seen seen = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
  coppice_client* client = NULL;
  int result = 0;
  if (argc < 2) {
    fprintf(stderr, "usage: %s HOST-OF-RANK-0 HOST-OF-RANK-1 ...\n", argv[0]);
    return 2;
  }
  if (coppice_abi_version() != COPPICE_ABI_VERSION) {
    fprintf(stderr, "libcoppice %s has another ABI\n", coppice_version());
    return 1;
  }
  if (coppice_open(NULL, 0, &client) != COPPICE_OK) return failed("open");
  result = run(client, (const char* const*)(argv + 1), (uint32_t)(argc - 1), &seen);
  coppice_close(client); /* the watch ends before `seen` goes */
  return result;
}
