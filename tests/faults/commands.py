"""The command line, without the protection that FAULT_WITHOUT names.

python -m tests.faults.commands ARGUMENTS      as `sceneloom ARGUMENTS`
"""

from sceneloom.cli.program import main
from tests.faults.unprotected import take_away

if __name__ == "__main__":
    take_away()
    main()
