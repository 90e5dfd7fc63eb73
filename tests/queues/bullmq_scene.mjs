// A BullMQ installation in trouble, made and measured by BullMQ itself: the scene for the queue tests.
// Usage: NODE_PATH=…/node_modules node bullmq_scene.mjs REDIS-URL   (BullMQ 5 and 6)
//
// Prints one line of JSON, what BullMQ's own API says, then keeps everything as it is until stdin is closed.
// Queues with overdue jobs have no worker: any worker would promote them.
import { fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';

const require = createRequire(import.meta.url); // the one that honours NODE_PATH
const { Queue, Worker, FlowProducer } = require('bullmq');
const { version } = require('bullmq/package.json');
const IORedis = require('ioredis');

const [url, role] = process.argv.slice(2);
const connection = new IORedis(url, { maxRetriesPerRequest: null });
const hour = 3_600_000;

async function perform(job) {
  if (job.name === 'refuse') throw new Error('no such invoice');
  if (job.name === 'charge') await sleep(hour);
}

if (role === 'ghost') {
  // A worker process that gets killed. Its lock is short so that the loss of its job shows within a second.
  process.on('disconnect', () => process.exit());
  new Worker('images', perform, { connection, name: 'ghost', lockDuration: 1000 });
} else {
  await main();
}

async function waitUntil(what, reached) {
  for (let i = 0; i < 300; i++) {
    if (await reached()) return;
    await sleep(100);
  }
  console.error(`bullmq scene: ${what} did not happen`);
  process.exit(1);
}

async function main() {
  const names = ['billing', 'mail', 'reports', 'images', 'family', 'nightly'];
  const queues = Object.fromEntries(names.map((name) => [name, new Queue(name, { connection })]));
  const { billing, mail, reports, images, nightly } = queues;
  const add = (queue, name, ago = 0, options = {}) => queue.add(name, {}, { timestamp: Date.now() - ago, ...options });

  // Failed for real: two for good, and one to be retried in an hour.
  new Worker('billing', perform, { connection, name: 'live', concurrency: 2 });
  await add(billing, 'fine');
  await add(billing, 'refuse', 2 * hour);
  await add(billing, 'refuse', hour);
  await add(billing, 'refuse', 3 * hour, { attempts: 3, backoff: { type: 'fixed', delay: hour } });
  await waitUntil('the failures', async () => (await billing.getFailedCount()) === 2);
  await waitUntil('the retry', async () => (await billing.getDelayedCount()) === 1);

  // In flight: both jobs of the live worker, and one of a worker that is then killed with its job.
  for (const ago of [60_000, 0]) await add(billing, 'charge', ago);
  await waitUntil('two jobs in flight', async () => (await billing.getActiveCount()) === 2);
  const ghost = fork(fileURLToPath(import.meta.url), [url, 'ghost'], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const lost = await add(images, 'charge', 300_000);
  await waitUntil("the ghost's job", async () => (await images.getActiveCount()) === 1);
  ghost.kill('SIGKILL');
  const locked = (queue, job) => connection.exists(queue.toKey(`${job.id}:lock`));
  await waitUntil('the loss of its lock', async () => !(await locked(images, lost)));

  // Waiting, oldest first.
  for (const ago of [4_000_500, 900_000, 5000]) await add(billing, 'charge', ago);
  await add(images, 'charge', 20_000);

  // Waiting with priorities; 1 runs first, and all of them after the jobs without one. In the list the newest, a last-in
  // one, is the next to run.
  for (const priority of [10, 5, 1, 1]) await add(mail, 'charge', 7 * hour, { priority });
  for (const ago of [2 * hour, hour]) await add(mail, 'charge', ago);
  await add(mail, 'charge', 1000, { lifo: true });

  // Delayed: in the future, and overdue where no worker promotes them.
  for (const delay of [hour, 2 * hour]) await add(billing, 'charge', 0, { delay });
  await add(mail, 'charge', hour, { delay: 60_000 });
  await add(mail, 'charge', 0, { delay: hour });
  await nightly.upsertJobScheduler('every-night', { pattern: '0 0 3 1 1 *' }, { name: 'charge' });

  // A paused queue: BullMQ 5 keeps its jobs in a list of another name.
  for (const ago of [30_000, 20_000]) await add(reports, 'charge', ago);
  await reports.pause();
  await add(reports, 'charge', 10_000);
  await add(reports, 'charge', 40_000, { priority: 2 });

  // A job that waits for its child.
  const flow = new FlowProducer({ connection });
  await flow.add({ name: 'charge', queueName: 'family', children: [{ name: 'charge', queueName: 'family' }] });

  const [seconds, microseconds] = (await connection.time()).map(Number);
  const now = seconds * 1000 + microseconds / 1000;
  const age = (times) => (times.length ? Math.round(now - Math.min(...times)) : null);

  async function measure(name) {
    const queue = queues[name];
    const counts = await queue.getJobCounts();
    const old = version.startsWith('5.');
    const paused = old ? ['paused'] : [];
    const list = await queue.getJobs(['waiting', ...paused], 0, -1, true); // the next to run is first
    const waiting = [...list, ...(await queue.getPrioritized())];
    const active = await queue.getActive();
    const delayed = await queue.getDelayed();
    const locks = await Promise.all(active.map((job) => locked(queue, job)));
    return {
      name,
      depth: counts.waiting + (counts.paused ?? 0) + counts.prioritized, // Queue.getJobCounts
      prioritized: counts.prioritized,
      in_flight: counts.active,
      scheduled: counts.delayed, // waiting retries included
      overdue: old
        ? delayed.filter((job) => !job.attemptsMade && job.timestamp + job.delay < now).length // a retry starts later
        : await queue.getDelayedCount(Math.floor(now)),
      retry: delayed.filter((job) => job.attemptsMade > 0).length, // Job.attemptsMade
      dead: counts.failed,
      oldest_dead_ms: age((await queue.getFailed()).map((job) => job.finishedOn)), // Job.finishedOn
      completed: counts.completed,
      waiting_children: counts['waiting-children'],
      stalled: locks.filter((lock) => !lock).length, // no API: active ones whose lock is gone
      workers: await queue.getWorkersCount(), // by the names of connections
      paused: await queue.isPaused(),
      oldest_age_ms: age(waiting.map((job) => job.timestamp)), // Job.timestamp
      head_age_ms: age(waiting.slice(0, 1).map((job) => job.timestamp)),
      oldest_in_flight_ms: age(active.map((job) => job.processedOn)), // Job.processedOn
      head: waiting.length ? { class: waiting[0].name, id: waiting[0].id } : null,
    };
  }

  const measured = [];
  for (const name of names.sort()) measured.push(await measure(name));
  console.log(JSON.stringify({ system: 'bullmq', version, at_ms: Math.floor(now), queues: measured }));

  process.stdin.resume();
  process.stdin.on('end', () => process.exit());
}
