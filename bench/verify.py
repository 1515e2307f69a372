"""A sum on storage nodes, and a copy from them, with `--verify` and without. With it nodes compare all bytes with their checksums,
also bytes that they compared within the last hour."""

import json
import subprocess
import time

import data
import pairs
from cluster import GRISTMILL, Nodes, environment, output_of

SIZE, QUICK_SIZE = 1 << 30, 64 * data.MIB
NODES = 4
GOAL = 1.35

SUM, SUM_VERIFIED, GET, GET_VERIFIED = "sum", "sum --verify", "get", "get --verify"


class Commands:
    """Commands over one file on nodes."""

    def __init__(self, binary, url):
        self.binary, self.url = binary, url
        self.answers = set()

    def run(self, *args):
        return output_of(self.binary, *args)

    def sum(self, *how):
        """The seconds of a sum, as its report says."""
        answer = json.loads(self.run("run", "sum", self.url, "--type", "f64", "--place", "storage", "--json", *how))
        self.answers.add(json.dumps(answer["result"]))
        pairs.require(len(self.answers) == 1, self.answers)
        return answer["report"]["elapsed_seconds"]

    def get(self, *how):
        """The seconds of a copy to nowhere, from the start of the command to its end."""
        begun = time.perf_counter()
        command = [self.binary, "get", self.url, "-", *how]
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment(), check=True)
        return time.perf_counter() - begun


def main():
    options = pairs.arguments(__doc__.partition(".")[0], size=pairs.SIZE, gristmill=GRISTMILL)
    size = options.size or (QUICK_SIZE if options.quick else SIZE)
    source = data.make(options.data, "normal", size)
    with Nodes(options.gristmill, options.data, NODES) as nodes:
        commands = Commands(options.gristmill, f"grist://{nodes.address}/numbers")
        commands.run("put", source, commands.url)
        sides = {
            SUM: commands.sum,
            SUM_VERIFIED: lambda: commands.sum("--verify"),
            GET: commands.get,
            GET_VERIFIED: lambda: commands.get("--verify"),
        }
        times = pairs.rounds(sides, options.rounds)
        pairs.require(commands.run("get", commands.url, "-") == source.read_bytes(), "the copy differs from the file")
    ratios = [pairs.ratio(times, SUM_VERIFIED, SUM, GOAL), pairs.ratio(times, GET_VERIFIED, GET, GOAL)]
    title = f"Comparing all bytes with their checksums: {data.size_name(size)} on {NODES} nodes"
    pairs.report("verify", title, options, times, dict.fromkeys(times, size), ratios)


if __name__ == "__main__":
    main()
