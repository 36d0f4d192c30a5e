"""Runs the tests of a project and writes what came of them as JSON.

python3 run_tests.py PROJECT REPORT

It is the judge's, not the project's: it lies outside the project, where no patch reaches it.
"""

import json
import os
import sys
import unittest


def main(project, report):
    os.chdir(project)
    sys.path.insert(0, project)
    suite = unittest.defaultTestLoader.discover("tests", top_level_dir=project)
    result = unittest.TextTestRunner(stream=sys.stderr).run(suite)
    failed = [test.id() for test, _ in result.failures + result.errors]
    passed = result.wasSuccessful() and result.testsRun > 0
    written = report + ".part"
    with open(written, "w", encoding="utf-8") as file:
        json.dump({"tests": result.testsRun, "failed": failed, "reward": 1.0 if passed else 0.0}, file)
    # A report that is there is a whole one, also when the time is up in the middle.
    os.rename(written, report)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
