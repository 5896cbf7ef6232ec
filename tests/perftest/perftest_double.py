#!/usr/bin/python3
"""A double of perftest's ib_write_lat and ib_write_bw, by whichever name it is called: takes the same
arguments, meets its peer over TCP as they do, measures nothing, and prints what they would.

It is strict about its caller: options that it does not know, peers that were given others, messages
that come in pieces (perftest takes each with one read) are misuse, which is written to the folder's
file "misuse". Each run leaves a line in "runs".

    PERFTEST_DOUBLE_FOLDER  where these files are
    PERFTEST_DOUBLE_FAULT   "DEVICE:PROGRAM:KIND ...", either of the first two may be *; KIND is a key
                            of FAULTS
"""

import getopt
import os
import resource
import signal
import socket
import sys
import time

NAME = os.path.basename(sys.argv[0])
MESSAGE_BYTES = 64
LINE = "-" * 87
LATENCY = (" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
           "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
           " {bytes:<7} {iterations}          1.06           7.83         1.12     \t       1.13     "
           "\t0.11\t\t1.31 \t\t7.83   ")
BANDWIDTH = (" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
             " {bytes:<7}    {iterations:<10}       0.00               97.56  \t\t   0.011631")


def folder(name):
    return os.path.join(os.environ["PERFTEST_DOUBLE_FOLDER"], name)


def note(name, text):
    with open(folder(name), "a", encoding="utf-8") as file:
        file.write(text + "\n")


def misuse(text):
    note("misuse", f"{NAME}: {text}: {' '.join(sys.argv[1:])}")
    sys.exit(1)


def fail(*lines):
    for line in lines:
        print(line, file=sys.stderr)
    sys.exit(1)


def no_device():
    fail(" Did not detect devices ", " If device exists, check if driver is up",
         " Unable to find the Infiniband/RoCE device")


def hang():
    while True:
        time.sleep(60)  # until it is killed


def crash():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), signal.SIGSEGV)


def flood():
    while True:
        print(LINE)


# What happens, and when: at its start, when it has met its peer, or instead of its report.
FAULTS = {
    "no-device": ("start", no_device),
    "deaf": ("start", hang),
    "flood": ("start", flood),
    "no-memory": ("met", lambda: fail("Couldn't allocate MR", "failed to create mr",
                                      "Failed to create MR")),
    "crash": ("met", crash),
    "hang": ("met", hang),
    "lost": ("report", lambda: fail(" Completion with error at client",
                                    " Failed status 12: wr_id 0 syndrom 0x81", "scnt=128, ccnt=0",
                                    " Failed to complete run_iter_bw function successfully")),
    "garbage": ("report", lambda: (print(LINE, "\n #bytes nothing\n 8 none\n", LINE), sys.exit(0))),
}


def options():
    known = {"ib_write_lat": ([], []), "ib_write_bw": (["-N"], ["report_gbits"])}
    if NAME not in known:
        misuse("there is no such program")
    short, long = known[NAME]
    try:
        given, rest = getopt.getopt(sys.argv[1:], "d:i:s:n:p:F" + "".join(o[1] for o in short),
                                    long + ["pkey_index="])
    except getopt.GetoptError as error:
        misuse(str(error))
    values = dict(given)
    for wanted in ["-d", "-i", "-s", "-n", "-p", "-F"] + short + ["--" + o for o in long]:
        if wanted not in values:
            misuse(f"{wanted} is missing")
    if len(rest) > 1 or rest not in ([], ["127.0.0.1"]):
        misuse("other peers than this machine's own agent")
    if int(values["-n"]) < 5 or int(values["-s"]) < 1 or not 1 <= int(values["-i"]) <= 255:
        misuse("a number out of range")
    return values, (rest or [None])[0]


def fault_at(moment, device):
    for fault in os.environ.get("PERFTEST_DOUBLE_FAULT", "").split():
        of_device, of_program, kind = fault.split(":")
        when, act = FAULTS[kind]
        if of_device in ("*", device) and of_program in ("*", NAME) and when == moment:
            act()


def meet(port, server):
    if server is not None:
        try:
            return socket.create_connection((server, port))
        except OSError:
            fail(f"Couldn't connect to {server}:{port}", " Unable to init the socket connection")
    with socket.socket() as stranger:
        try:
            stranger.bind(("0.0.0.0", port))
        except OSError:
            pass
        else:
            misuse("a port that anybody may take")
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("0.0.0.0", port))
    except OSError:
        fail(f"Couldn't listen to port {port}", " Unable to init the socket connection")
    listener.listen(1)
    peer, _ = listener.accept()
    listener.close()
    return peer


def exchange(peer, is_client, text):
    """Each tells the other the same, the client first, as perftest's two ends do."""
    def say():
        peer.sendall(text.encode().ljust(MESSAGE_BYTES))

    def hear():
        message = peer.recv(MESSAGE_BYTES)
        if not message:
            fail("ethernet_read_keys: Couldn't read remote address")
        if len(message) != MESSAGE_BYTES:
            misuse(f"a message of {len(message)} bytes instead of {MESSAGE_BYTES}")
        if message.decode().strip() != text:
            misuse(f"the peer was given {message.decode().strip()} instead of {text}")

    for act in ((say, hear) if is_client else (hear, say)):
        act()


def main():
    values, server = options()
    device, size, iterations = values["-d"], values["-s"], values["-n"]
    note("runs", f"{os.getpid()} {NAME} {'client' if server else 'server'} {device} {values['-i']} "
                 f"{size} {iterations} {values.get('--pkey_index', '-')}")
    fault_at("start", device)
    if server is None:
        print("\n************************************\n* Waiting for client to connect... *\n"
              "************************************")
    peer = meet(int(values["-p"]), server)
    fault_at("met", device)
    exchange(peer, server is not None, f"{NAME} 6.06 {size} {iterations}")
    print(LINE)
    print("                    RDMA_Write", "Latency" if NAME == "ib_write_lat" else "BW", "Test")
    print(f" Dual-port       : OFF\t\tDevice         : {device}\n Number of qps   : 1\t\t"
          "Transport type : IB\n Connection type : RC\t\tUsing SRQ      : OFF\n"
          " PCIe relax order: ON\n ibv_wr* API     : ON\n Mtu             : 4096[B]\n"
          " Link type       : IB\n Max inline data : 220[B]\n rdma_cm QPs\t : OFF\n"
          " Data ex. method : Ethernet")
    print(LINE)
    print(" local address: LID 0x01 QPN 0x0119 PSN 0x18f3b3 RKey 0x1fff00 VAddr 0x00560b8d1bd008\n"
          " remote address: LID 0x02 QPN 0x0119 PSN 0x5ad5e1 RKey 0x1fff00 VAddr 0x0055d14ac7a008")
    print(LINE)
    fault_at("report", device)
    report = LATENCY if NAME == "ib_write_lat" else BANDWIDTH
    print(report.format(bytes=size, iterations=iterations))
    print(LINE)
    exchange(peer, server is not None, "done")


main()
