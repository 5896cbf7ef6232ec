"""What coppicectl ends with, by the code that its error names: the table of client/README.md."""
import re

BY_CODE = {
    "INVALID_ARGUMENT": 2, "OUT_OF_RANGE": 2,
    "NOT_FOUND": 3,
    "PERMISSION_DENIED": 4, "UNAUTHENTICATED": 4,
    "CANCELLED": 5, "UNAVAILABLE": 5, "DEADLINE_EXCEEDED": 5,
    "RESOURCE_EXHAUSTED": 6, "FAILED_PRECONDITION": 6, "ALREADY_EXISTS": 6, "ABORTED": 6,
}


def of(errors):
    """The exit status that belongs to what was written to stderr; 1 if its last error names no code of the table."""
    codes = re.findall(r"^error: .*\[([A-Z_]+)\]$", errors, re.M | re.S)
    codes = codes or re.findall(r'^\{"error":\{"code":"([A-Z_]+)",', errors, re.M)  # --json
    return BY_CODE.get(codes[-1], 1) if codes else 1


def without_waiting(errors):
    """What is told of a call that takes longer than a second, as any may on a busy machine, is no error."""
    return re.sub(r"^waiting for .*\n", "", errors, flags=re.M)


def check_failure(test, ran, words=()):
    """`ran`, its status, output and errors, failed as its error says, which has `words`, and answered nothing."""
    status, out, errors = ran
    test.assertNotEqual(status, 0)
    test.assertEqual((status, out), (of(errors), ""), errors)
    for word in words:
        test.assertIn(word, errors)
