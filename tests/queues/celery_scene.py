"""A Celery installation in trouble, made and measured by Celery itself: the scene for the queue tests.

Usage: python3 celery_scene.py REDIS-URL   (Celery 5)

Prints one line of JSON, what Celery's own API says, then keeps everything as it is until stdin is closed.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from datetime import timezone

import celery
from kombu.utils.json import loads

URL = sys.argv[1]
app = celery.Celery("scene", broker=URL, backend=URL)
app.conf.update(
    worker_prefetch_multiplier=2,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    # Longer than the default of an hour: else the live worker would put the ghost's old deliveries back into the queue.
    broker_transport_options={"visibility_timeout": 86400},
)


@app.task(name="billing.charge")
def charge(*_):
    time.sleep(3600)


@app.task(name="billing.charge_late", acks_late=True)
def charge_late(*_):
    time.sleep(3600)


@app.task(name="billing.refuse")
def refuse(*_):
    raise ValueError("no such invoice")


@app.task(name="billing.again", bind=True)
def again(self):
    raise self.retry(exc=ValueError("the bank is closed"), countdown=3000)


def work(parent, name, concurrency, queues):
    """The body of a worker process, as `celery worker -P threads -Q …` runs it."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with this script, however that ends
    if os.getppid() != int(parent):
        os._exit(1)
    warnings.simplefilter("ignore")  # about running as root
    app.worker_main(
        ["worker", "--hostname", name, "--queues", queues, "--concurrency", concurrency]
        + "--pool threads --loglevel CRITICAL --without-mingle --without-gossip".split()
    )


def main():
    children = []

    def worker(name, concurrency, queues):
        command = [sys.executable, __file__, URL, str(os.getpid()), name, str(concurrency), queues]
        children.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
        return children[-1]

    def wait_until(what, reached):
        for _ in range(300):
            if reached():
                return
            time.sleep(0.1)
        sys.exit(f"celery scene: {what} did not happen")

    def ask(worker, question):
        """What one worker says about its tasks; with one worker named, the answer is waited for no longer than needed."""
        inspector = app.control.inspect(destination=[worker], timeout=10)
        return getattr(inspector, question)()[worker]

    def send(task, queue, **options):
        return task.apply_async(queue=queue, **options)

    worker("live@scene", 2, "celery,mail")
    ghost = worker("ghost@scene", 1, "images")
    names = {"live@scene", "ghost@scene"}
    wait_until("the start of two workers", lambda: {n for r in app.control.ping(timeout=1, limit=2) for n in r} == names)

    # Failed for real, twice, and once to be retried in 50 minutes.
    failed = [send(refuse, "celery"), send(refuse, "mail")]
    retried = send(again, "mail")
    wait_until("the failures", lambda: [r.state for r in (*failed, retried)] == ["FAILURE", "FAILURE", "RETRY"])
    wait_until("the retry", lambda: len(ask("live@scene", "scheduled")) == 1)

    # In flight: a task that was acknowledged when it began (the default), so no key tells of it, and a late one.
    send(charge, "celery")
    send(charge_late, "mail")
    wait_until("two tasks in flight", lambda: len(ask("live@scene", "active")) == 2)

    # Two in flight with a worker that is then killed: one begun and one prefetched.
    for _ in range(2):
        send(charge_late, "images")
    wait_until("the ghost's task", lambda: len(ask("ghost@scene", "active")) == len(ask("ghost@scene", "reserved")) == 1)
    ghost.kill()
    ghost.wait()

    # Scheduled: the worker takes tasks with an ETA at once and holds them. One is further away than the default
    # visibility timeout, so it would run more than once.
    for countdown in (1800, 7200):
        send(charge, "celery", countdown=countdown)
    wait_until("the scheduled tasks", lambda: len(ask("live@scene", "scheduled")) == 3)

    # Waiting, behind those that the worker has prefetched: the head of the queue is sent after it took what it can.
    prefetched = 3  # two per thread, less the late one in flight
    for number in range(prefetched):
        send(charge, "celery", args=[number])
    wait_until("the prefetched tasks", lambda: len(ask("live@scene", "reserved")) == prefetched)
    first = {"celery": [send(charge, "celery", args=[number]) for number in range(5)][0]}

    # Waiting with priorities, in a queue without a worker. The transport has the steps 0, 3, 6 and 9; 0 runs first.
    for priority in (9, 7, 6, 6, 3, 0, 0):
        sent = send(charge, "priority", priority=priority)
        if priority == 0:
            first.setdefault("priority", sent)

    with app.connection_for_read() as connection:
        channel = connection.default_channel
        redis = channel.client

        # As though the ghost had taken its tasks two hours ago; kombu has no API for the deliveries of a dead worker.
        deliveries = {tag: loads(value) for tag, value in redis.hgetall(channel.unacked_key).items()}
        for tag, (_, _, routing_key) in deliveries.items():
            if routing_key == "images":
                redis.zincrby(channel.unacked_index_key, -7200, tag)

        seconds, microseconds = redis.time()
        now = seconds + microseconds / 1e6

        def age(times):
            return round((now - min(times)) * 1000) if times else None

        def depth(queue):
            """Queue.declare with passive: the number of waiting messages over all priorities."""
            try:
                return channel.queue_declare(queue=queue, passive=True).message_count
            except connection.channel_errors:  # kombu knows no empty queue
                return 0

        active = ask("live@scene", "active")
        reserved = ask("live@scene", "reserved")
        scheduled = [entry["request"] for entry in ask("live@scene", "scheduled")]
        listens = [queue["name"] for queue in ask("live@scene", "active_queues")]
        live = {name for reply in app.control.ping(timeout=1) for name in reply}

        def measure(queue):
            of = [[task for task in tasks if task["delivery_info"]["routing_key"] == queue] for tasks in (active, reserved, scheduled)]
            unacked = [tag for tag, (_, _, routing_key) in deliveries.items() if routing_key == queue]
            held = [task for tasks in of for task in tasks if not task["acknowledged"]]
            if queue != "images" and len(held) != len(unacked):
                sys.exit(f"celery scene: {len(held)} tasks of {queue} are not acknowledged, but {len(unacked)} are in redis")
            return {
                "name": queue,
                "depth": depth(queue),
                "in_flight": len(of[0]),  # Inspect.active: the ghost's are unknown to it
                "prefetched": len(of[1]),  # Inspect.reserved
                "scheduled": len(of[2]),  # Inspect.scheduled, those that wait for a retry too
                "unacked": len(unacked),  # Inspect.*: those not acknowledged; for the ghost's, kombu's own key
                "overdue": None,
                "retry": None,
                "dead": None,  # results name no queue, see below
                "workers": int(queue in listens),  # Inspect.active_queues
                "paused": None,
                "oldest_age_ms": None,  # no message has a time
                "oldest_in_flight_ms": age([task["time_start"] for task in of[0]]),  # Inspect.active
                "oldest_unacked_ms": age([redis.zscore(channel.unacked_index_key, tag) for tag in unacked]),
                "head": {"class": charge.name, "id": first[queue].id} if queue in first else None,  # the first one sent
            }

        results = [(r.state, r.date_done.replace(tzinfo=timezone.utc).timestamp()) for r in failed]  # AsyncResult
        answer = {
            "system": "celery",
            "version": celery.__version__,
            "at_ms": int(now * 1000),
            "totals": {
                "unacked": len(deliveries),
                "dead": sum(state == "FAILURE" for state, _ in results),
                "oldest_dead_ms": age([done for _, done in results]),
                "retry": int(retried.state == "RETRY"),
                "workers": len(live),
            },
            "queues": [measure(queue) for queue in ("celery", "images", "mail", "priority")],
        }

    print(json.dumps(answer))
    sys.stdout.flush()
    sys.stdin.read()
    for child in children:
        child.kill()
        child.wait()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        work(*sys.argv[2:])
    else:
        main()
