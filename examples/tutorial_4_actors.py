"""Tutorial 4, actors: an object that lives in a process of its own.

Tasks forget; actors remember. A call to an actor's method is a task that runs where the object is,
one at a time and in the order of the calls, so that state needs no locks.
"""

import time

import oxiray as ray


@ray.remote
class Account:
    """Each operation takes a while: reading the balance and writing it are two steps."""

    def __init__(self, owner):
        self.owner = owner
        self.balance = 0

    def deposit(self, amount):
        before = self.balance
        time.sleep(0.01)
        self.balance = before + amount  # two at once would lose one; there are never two at once
        return self.balance

    def withdraw(self, amount):
        if amount > self.balance:
            raise ValueError(f"{self.owner} has {self.balance}, not {amount}")
        self.balance -= amount
        return self.balance


def main():
    ray.init(num_cpus=4, logging_level="warning")

    # Two actors are two processes: their calls run at the same time, each one's in order.
    ada, bob = Account.remote("Ada"), Account.remote("Bob")
    begin = time.perf_counter()
    refs = [account.deposit.remote(10) for _ in range(20) for account in (ada, bob)]
    balances = ray.get(refs)
    took = time.perf_counter() - begin
    print(f"40 deposits of 10 ms in {took:.2f} s by two actors")
    assert balances[::2] == list(range(10, 210, 10))

    # An exception in a method arrives at whoever asks for the result; the actor goes on.
    try:
        ray.get(ada.withdraw.remote(1_000))
    except ValueError as error:
        print(f"refused: {str(error).splitlines()[-1]}")
    left = ray.get([ada.withdraw.remote(50), bob.withdraw.remote(75)])
    print(f"Ada has {left[0]}, Bob has {left[1]}")


if __name__ == "__main__":
    main()
