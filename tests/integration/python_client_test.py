"""A client that is not ours: Debian's python3-grpcio, which knows nothing of coppice/v1 but what
the server's reflection (v1alpha) tells it. Registers a job; creates, reads and releases a tree."""

import sys
import unittest

import grpc

from coppiced_process import Coppiced
from reflection_client import Reflection, Service

PROGRAM = sys.argv.pop(1)


class PythonClient(unittest.TestCase):
    def setUp(self):
        self.daemon = Coppiced(PROGRAM)
        self.addCleanup(self.daemon.clean_up)
        self.daemon.start().wait_until_listening()
        channel = grpc.insecure_channel(self.daemon.address)
        self.addCleanup(channel.close)
        reflection = Reflection(channel)
        self.services = reflection.services()
        names = ["coppice.v1.Jobs", "coppice.v1.Trees", "coppice.v1.Fabric"]
        pool = reflection.pool_of(*names)
        self.jobs, self.trees, self.fabric = (Service(channel, pool, name) for name in names)
        self.fabric.Sweep()  # returns once a fabric is known

    def test_reflection_lists_the_services(self):
        for name in ("coppice.v1.Jobs", "coppice.v1.Trees", "coppice.v1.Fabric",
                     "grpc.health.v1.Health"):
            self.assertIn(name, self.services)

    def register_all(self):
        self.nodes = list(self.fabric.ListNodes().nodes)
        self.assertEqual(len(self.nodes), 16)
        job = self.jobs.RegisterJob(request_id="python", display_name="python",
                                    endpoints=[node.host for node in self.nodes])
        self.assertEqual(job.rank_count, 16)
        return job

    def assert_is_a_tree(self, tree, ranks):
        """Every rank once and in order, one root, every other node below it, switches distinct."""
        self.assertEqual((tree.rank_count, len(tree.nodes.endpoints)), (len(ranks), len(ranks)))
        self.assertEqual(list(tree.nodes.endpoints),
                         [int(self.nodes[rank].port_guid, 16) for rank in ranks])
        self.assertEqual(tree.switch_count, len(set(tree.nodes.switches)))
        self.assertEqual(tree.switch_count, len(tree.nodes.switches))
        parents = list(tree.nodes.parents)
        self.assertEqual(len(parents), tree.rank_count + tree.switch_count)
        self.assertEqual([n for n, parent in enumerate(parents) if parent == -1], [tree.root])
        for node, links in enumerate(tree.nodes.links):
            self.assertEqual(links == 0, node == tree.root, node)
        depths = [self.depth(parents, node) for node in range(len(parents))]
        self.assertEqual(max(depths), tree.height)
        return parents

    def depth(self, parents, node):
        steps = 0
        while parents[node] != -1:
            self.assertIn(parents[node], range(len(parents)))
            node, steps = parents[node], steps + 1
            self.assertLess(steps, len(parents), "a circle of parents")
        return steps

    def assert_entries(self, holders):
        """The switches' entries in use are those of `holders` (GUID -> tree ids), no others."""
        switches = self.fabric.ListSwitches().switches
        self.assertEqual(len(switches), 6)
        for switch in switches:
            trees = holders.get(int(switch.guid, 16), [])
            self.assertEqual(list(switch.tree_ids), trees, switch)
            self.assertEqual(switch.entries_taken, len(trees), switch)
            self.assertEqual(switch.entries_free, switch.entries_total - len(trees), switch)
        self.assertEqual(self.fabric.GetFabric().entries_taken, sum(map(len, holders.values())))

    def test_a_tree_from_registration_to_release(self):
        job = self.register_all()
        tree = self.trees.CreateTree(job_id=job.id, request_id="t", type="TREE_TYPE_II",
                                     operation="OPERATION_ALLREDUCE")
        self.assertEqual(tree.type, 2)
        parents = self.assert_is_a_tree(tree, range(16))
        self.assertGreaterEqual(tree.root, 16, "the root of a type II tree is a switch")
        for rank in range(16):
            self.assertGreaterEqual(parents[rank], 16, "a rank's parent is a switch")
        self.assertEqual(self.trees.GetTree(id=tree.id), tree)
        self.assertEqual([t.id for t in self.trees.ListTrees(job_id=job.id).trees], [tree.id])
        self.assert_entries({guid: [tree.id] for guid in tree.nodes.switches})

        view = self.trees.GetTree(id=tree.id, view="TREE_VIEW_RANK", rank=3).rank_view
        self.assertEqual((view.rank, view.parent.is_switch, len(view.children)), (3, True, 0))
        self.assertEqual(int(view.parent.guid, 16), tree.nodes.switches[parents[3] - 16])

        self.trees.ReleaseTree(id=tree.id)
        self.assert_entries({})
        with self.assertRaises(grpc.RpcError) as gone:
            self.trees.GetTree(id=tree.id)
        self.assertEqual(gone.exception.code(), grpc.StatusCode.NOT_FOUND)
        self.assertIn(tree.id, gone.exception.details())

    def test_a_tree_over_some_ranks_and_the_end_of_its_job(self):
        job = self.register_all()
        ranks = [9, 2, 15, 4, 0]
        first = self.trees.CreateTree(job_id=job.id, request_id="nics", type="TREE_TYPE_I",
                                      ranks=ranks)
        parents = self.assert_is_a_tree(first, ranks)
        self.assertEqual((first.type, first.switch_count), (1, 0))
        for number, rank in enumerate(ranks):
            view = self.trees.GetTree(id=first.id, view="TREE_VIEW_RANK", rank=number).rank_view
            self.assertEqual(view.HasField("parent"), number != first.root, rank)
            self.assertEqual(sorted(child.rank for child in view.children),
                             [n for n, parent in enumerate(parents) if parent == number])
        self.assert_entries({})
        second = self.trees.CreateTree(job_id=job.id, request_id="switches", type="TREE_TYPE_II",
                                       ranks=ranks)
        self.assert_is_a_tree(second, ranks)
        self.assert_entries({guid: [second.id] for guid in second.nodes.switches})
        self.jobs.EndJob(id=job.id)
        self.assertEqual(self.jobs.GetJob(id=job.id).state, 2)
        self.assert_entries({})
        self.assertEqual(list(self.trees.ListTrees(job_id=job.id).trees), [])


if __name__ == "__main__":
    unittest.main()
