"""Asks the application and compares. Prints a report as JSON; says also whether the seeded orders are as they were."""

import json
import os
import random
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from client import orders, put

APP = os.environ["APP"]
OWN = "tester-"


def total(customer):
    """Status and answer; 0 when there is none."""
    try:
        with urllib.request.urlopen(f"{APP}/total?customer={customer}", timeout=60) as answer:
            return answer.status, answer.read(4096).decode(errors="replace").strip()
    except urllib.error.HTTPError as error:
        return error.code, ""
    except OSError:
        return 0, ""


# Nobody can have written the answer down for a customer of this moment.
customer = f"{OWN}{random.randrange(10**9)}"
cents = random.randrange(100, 10**6)
put([{"customer": customer, "cents": cents, "kind": "sale"}, {"customer": customer, "cents": 99, "kind": "refund"}])

CASES = {
    "sales and refunds": ("ada", 200, "9.50"),
    "sales only": ("grace", 200, "1.00"),
    "all of it refunded": ("alan", 200, "0.00"),
    "a new customer": (customer, 200, f"{(cents - 99) / 100:.2f}"),
    "nobody": ("nobody", 404, None),
}

with ThreadPoolExecutor(len(CASES)) as askers:
    answers = list(askers.map(total, [who for who, _, _ in CASES.values()]))
failed, silent = [], 0
for (name, (_, status, text)), found in zip(CASES.items(), answers):
    silent += found[0] == 0
    if found[0] != status or (text is not None and found[1] != text):
        failed.append(name)
with open("/store/orders.json") as file:
    seeded = json.load(file)
altered = [order for order in orders() if not order["customer"].startswith(OWN)] != seeded
print(json.dumps({"tests": len(CASES), "failed": failed, "silent": silent, "altered": altered}))
