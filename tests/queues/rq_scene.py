"""An RQ installation in trouble, made and measured by RQ itself: the scene for the queue tests.

Usage: python3 rq_scene.py REDIS-URL   (RQ 1, 2 and 3)

Prints one line of JSON, what RQ's own API says, then keeps everything as it is until stdin is closed.
No worker runs a scheduler: scheduled jobs stay where they are, overdue or not.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone

import rq
from redis import Redis
from rq.registry import DeferredJobRegistry, FailedJobRegistry, ScheduledJobRegistry, StartedJobRegistry
from rq.utils import utcformat
from rq.worker_registration import REDIS_WORKER_KEYS


def die_with(parent):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


def long_job(*_):
    time.sleep(3600)


def failing_job(*_):
    raise ValueError("no such invoice")


def work(url, parent, name, queues):
    """The body of a worker process, as `rq worker` runs it. Jobs run in forks of it."""
    die_with(int(parent))
    me = os.getpid()
    os.register_at_fork(after_in_child=lambda: die_with(me))
    rq.Worker(queues, name=name, connection=Redis.from_url(url)).work(logging_level="CRITICAL")


def main(url):
    redis = Redis.from_url(url)
    children = []

    def worker(name, *queues):
        command = [sys.executable, __file__, url, str(os.getpid()), name, *queues]
        children.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
        return children[-1]

    def wait_until(what, reached):
        for _ in range(300):
            if reached():
                return
            time.sleep(0.1)
        sys.exit(f"rq scene: {what} did not happen")

    def queue(name):
        return rq.Queue(name, connection=redis)

    def push(name, function, *args, ago=0.0, **options):
        """Enqueues a job as of some seconds ago."""
        job = queue(name).enqueue("rq_scene." + function, *args, job_timeout=3600, **options)
        job.created_at -= timedelta(seconds=ago)
        job.enqueued_at -= timedelta(seconds=ago)
        job.save()
        return job

    def count(registry, name):
        return registry(queue=queue(name)).count

    worker("live", "critical", "default")
    ghost = worker("ghost", "reports")

    # Failed for real: two for good, one to be retried in an hour, and one that another job waits for.
    for number in range(2):
        push("default", "failing_job", number)
    push("default", "failing_job", 2, retry=rq.Retry(max=3, interval=3600))
    needed = push("default", "failing_job", 3)
    queue("default").enqueue("rq_scene.long_job", depends_on=needed)
    wait_until("the failures", lambda: count(FailedJobRegistry, "default") == 3)
    wait_until("the retry", lambda: count(ScheduledJobRegistry, "default") == 1)

    # In flight: one job of the live worker, and one of a worker that is then killed with its job.
    begun = [push(name, "long_job") for name in ("critical", "reports")]
    wait_until("the jobs in flight", lambda: all(job.refresh() or job.started_at for job in begun))
    wait_until("calm", lambda: not any(queue(job.origin).intermediate_queue.get_job_ids() for job in begun))
    dead = next(found for found in rq.Worker.all(connection=redis) if found.name == "ghost")
    ghost.kill()
    ghost.wait()
    # As though that was some time ago. The hash of a worker outlives it by 90 seconds, or by eight minutes if it was idle.
    redis.hset(dead.key, "last_heartbeat", utcformat(datetime.now(timezone.utc) - timedelta(seconds=400)))
    redis.expire(dead.key, 480)

    # Waiting. In the first queue the next to run is not the oldest.
    for ago in (4000.5, 900, 5):
        push("critical", "long_job", ago=ago)
    push("critical", "failing_job", ago=10, at_front=True)
    for number in range(40):
        push("default", "failing_job", number, ago=86400 - 60 * number)
    # Taken by a worker that died before it could start it: the id is in the intermediate list alone.
    push("reports", "long_job", ago=700)
    rq.Queue.lmove(redis, queue("reports").key, None)

    # Scheduled: two in the future and one overdue.
    for seconds in (3600, 7200, -600):
        due = datetime.now(timezone.utc) + timedelta(seconds=seconds)
        queue("default").enqueue_at(due, "rq_scene.long_job")
    push("expired", "long_job")

    seconds, microseconds = redis.time()
    now = seconds + microseconds / 1e6

    def age(times):
        """Milliseconds since the earliest of the times; RQ 1 has them in UTC without saying so."""
        stamps = [moment.replace(tzinfo=moment.tzinfo or timezone.utc).timestamp() for moment in times if moment]
        return round((now - min(stamps)) * 1000) if stamps else None

    def fetch(ids):
        return [job for job in rq.job.Job.fetch_many(ids, connection=redis) if job]

    def measure(name):
        of = queue(name)
        waiting = of.get_jobs()
        running = StartedJobRegistry(queue=of)
        scheduled = ScheduledJobRegistry(queue=of)
        failed = FailedJobRegistry(queue=of)
        return {
            "name": name,
            "depth": of.count,  # Queue.count
            "in_flight": running.count,  # StartedJobRegistry.count: the ghost's job too, until its entry expires
            "scheduled": scheduled.count,  # ScheduledJobRegistry.count, waiting retries included
            "overdue": len(scheduled.get_jobs_to_schedule(now)),
            "retry": None,  # no API of its own: a retry is a scheduled job
            "dead": failed.count,  # FailedJobRegistry.count
            "oldest_dead_ms": age(job.ended_at for job in fetch(failed.get_job_ids())),
            "deferred": DeferredJobRegistry(queue=of).count,
            "intermediate": len(of.intermediate_queue.get_job_ids()),
            "workers": len(rq.Worker.all(queue=of)),  # Worker.all: the ghost too, while its hash lives
            "paused": None,  # only all queues together can be suspended
            "oldest_age_ms": age(job.enqueued_at for job in waiting),  # Job.enqueued_at
            "head_age_ms": age(job.enqueued_at for job in waiting[:1]),
            "oldest_in_flight_ms": age(job.started_at for job in fetch(running.get_job_ids())),  # Job.started_at
            "head": {"class": waiting[0].func_name, "id": waiting[0].id} if waiting else None,
        }

    queues = [measure(name) for name in sorted(found.name for found in rq.Queue.all(connection=redis))]
    workers = [
        {
            "name": found.name,
            "state": str(getattr(found.get_state(), "value", found.get_state())),
            "queues": found.queue_names(),
            "heartbeat_ms": age([found.last_heartbeat]),
            "job": found.get_current_job_id(),
        }
        for found in sorted(rq.Worker.all(connection=redis), key=lambda found: found.name)
    ]

    # Two kinds of leftovers that RQ's API deletes when it comes across them, so they are made last: the id of a job
    # whose hash has expired, which Queue.count counts and Queue.get_jobs skips, and a worker without a hash, which
    # Worker.all skips.
    expired = next(entry for entry in queues if entry["name"] == "expired")
    for job in queue("expired").get_jobs():
        redis.delete(job.key)
    expired.update(depth=queue("expired").count, oldest_age_ms=None, head_age_ms=None, head=None)
    redis.sadd(REDIS_WORKER_KEYS, REDIS_WORKER_KEYS.removesuffix("s") + ":long-gone")

    print(json.dumps({"system": "rq", "version": rq.VERSION, "at_ms": int(now * 1000), "queues": queues, "workers": workers}))
    sys.stdout.flush()
    sys.stdin.read()
    for child in children:
        child.kill()
        child.wait()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        work(*sys.argv[1:4], sys.argv[4:])
    else:
        main(sys.argv[1])
