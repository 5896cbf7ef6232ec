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

    def test_a_tree_from_registration_to_release(self):
        nodes = self.fabric.ListNodes().nodes
        self.assertEqual(len(nodes), 16)
        job = self.jobs.RegisterJob(request_id="python", display_name="python",
                                    endpoints=[node.host for node in nodes])
        self.assertEqual(job.rank_count, 16)
        tree = self.trees.CreateTree(job_id=job.id, request_id="t", type="TREE_TYPE_II",
                                     operation="OPERATION_ALLREDUCE")
        self.assertEqual(tree.rank_count, 16)
        self.assertGreater(tree.switch_count, 0)
        self.assertEqual(list(tree.nodes.parents).count(-1), 1)
        self.assertEqual(self.trees.GetTree(id=tree.id), tree)
        rank = self.trees.GetTree(id=tree.id, view="TREE_VIEW_RANK", rank=3).rank_view
        self.assertTrue(rank.parent.is_switch)
        self.assertEqual(self.fabric.GetFabric().entries_taken, tree.switch_count)
        self.trees.ReleaseTree(id=tree.id)
        self.assertEqual(self.fabric.GetFabric().entries_taken, 0)
        with self.assertRaises(grpc.RpcError) as gone:
            self.trees.GetTree(id=tree.id)
        self.assertEqual(gone.exception.code(), grpc.StatusCode.NOT_FOUND)
        self.assertIn(tree.id, gone.exception.details())
        self.jobs.EndJob(id=job.id)
        self.assertEqual(self.jobs.GetJob(id=job.id).state, 2)


if __name__ == "__main__":
    unittest.main()
