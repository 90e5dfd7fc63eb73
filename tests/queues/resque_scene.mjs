// A Resque installation in trouble, made and measured by node-resque, which shares its keys with the Ruby library: the
// scene for the queue tests. Usage: NODE_PATH=…/node_modules node resque_scene.mjs REDIS-URL
//
// Prints one line of JSON, what node-resque's own API says, then keeps everything as it is until stdin is closed.
// No scheduler runs: delayed jobs stay where they are, overdue or not.
import { fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';

const require = createRequire(import.meta.url); // the one that honours NODE_PATH
const { Queue, Worker } = require('node-resque');
const IORedis = require('ioredis');

const [url, role] = process.argv.slice(2);
const redis = new IORedis(url);
const connection = { redis };
const jobs = {
  Charge: () => sleep(3_600_000),
  Refuse: () => {
    throw new Error('no such invoice');
  },
};

async function work(name, queues) {
  const worker = new Worker({ connection, name, queues, timeout: 100 }, jobs);
  worker.on('error', (error) => console.error(error));
  await worker.connect();
  await worker.start();
}

if (role === 'ghost') {
  process.on('disconnect', () => process.exit()); // it ends with this script, however that ends
  await work('scene:2', ['reports']);
} else {
  await main();
}

async function waitUntil(what, reached) {
  for (let i = 0; i < 300; i++) {
    if (await reached()) return;
    await sleep(100);
  }
  console.error(`resque scene: ${what} did not happen`);
  process.exit(1);
}

async function main() {
  const queue = new Queue({ connection });
  await queue.connect();

  // Failed for real.
  await work('scene:1', ['critical', 'default']);
  for (const id of [1, 2]) await queue.enqueue('default', 'Refuse', [id]);
  await queue.enqueue('critical', 'Refuse', [3]);
  await waitUntil('the failures', async () => (await queue.failedCount()) === 3);

  // In flight: the job of the live worker, and that of a worker that is then killed with it.
  const working = async () => Object.values(await queue.allWorkingOn()).filter((work) => work.queue);
  await queue.enqueue('critical', 'Charge', [1]);
  await queue.enqueue('reports', 'Charge', [2]);
  const ghost = fork(fileURLToPath(import.meta.url), [url, 'ghost'], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  await waitUntil('two jobs in flight', async () => (await working()).length === 2);
  ghost.kill('SIGKILL');
  await waitUntil('the end of the ghost', () => ghost.signalCode);
  // As though that was ten minutes ago. node-resque has a key per worker for its last ping, Ruby a hash for all.
  const pinged = Math.round(Date.now() / 1000) - 600;
  await redis.set('resque:worker:ping:scene:2', JSON.stringify({ time: pinged, name: 'scene:2', queues: 'reports' }));
  for (const [worker, time] of [['scene:1:critical,default', Date.now()], ['scene:2:reports', pinged * 1000]]) {
    await redis.hset('resque:workers:heartbeat', worker, new Date(time).toISOString().replace(/\.\d+Z/, '+00:00'));
  }

  // Waiting. The head of a list is the next to run. An Active Job has a time in its argument, no other has.
  for (const id of [10, 11, 12]) await queue.enqueue('critical', 'Charge', [id]);
  for (let id = 0; id < 40; id++) await queue.enqueue('default', 'Refuse', [id]);
  const enqueued = new Date(Date.now() - 120_000).toISOString();
  await queue.enqueue('mailers', 'ActiveJob::QueueAdapters::ResqueAdapter::JobWrapper', [
    { job_class: 'InvoiceMailJob', job_id: 'a1', queue_name: 'mailers', arguments: [7], enqueued_at: enqueued },
  ]);

  // Delayed: in the future, and overdue.
  for (const seconds of [3600, 7200, -600]) await queue.enqueueAt(Date.now() + seconds * 1000, 'default', 'Charge', [seconds]);
  await queue.enqueueAt(Date.now() - 600_000, 'mailers', 'Charge', [0]);

  const [seconds, microseconds] = (await redis.time()).map(Number);
  const now = seconds * 1000 + microseconds / 1000;
  const age = (times) => (times.length ? Math.round(now - Math.min(...times)) : null);

  const delayed = Object.entries(await queue.allDelayed()).flatMap(([due, tasks]) => tasks.map((task) => ({ due, ...task })));
  const failed = await queue.failed(0, -1);
  const running = await working();
  const workers = await queue.workers();
  const alive = (name) => name !== 'scene:2'; // its last ping is the only sign, and the API has no word for it

  async function measure(name) {
    const of = (all) => all.filter((one) => one.queue === name);
    const [head] = await queue.queued(name, 0, 0);
    const failures = failed.filter((failure) => failure.queue === name);
    return {
      name,
      depth: await queue.length(name), // Queue.length
      in_flight: of(running).length, // Queue.allWorkingOn: the ghost's job too
      scheduled: of(delayed).length, // Queue.allDelayed
      overdue: of(delayed).filter((job) => Number(job.due) < now).length,
      retry: null,
      dead: failures.length, // Queue.failed
      oldest_dead_ms: age(failures.map((failure) => Date.parse(failure.failed_at))), // whole seconds
      workers: Object.values(workers).filter((queues) => queues.split(',').includes(name)).length, // Queue.workers: ghosts too
      live_workers: Object.entries(workers).filter(([worker, queues]) => alive(worker) && queues.split(',').includes(name)).length,
      paused: null,
      oldest_age_ms: head?.args[0]?.enqueued_at ? age([Date.parse(head.args[0].enqueued_at)]) : null, // of Active Jobs only
      oldest_in_flight_ms: age(of(running).map((work) => Date.parse(work.run_at))), // Queue.allWorkingOn, whole seconds
      head: head ? { class: head.args[0]?.job_class ?? head.class, id: head.args[0]?.job_id ?? null } : null,
    };
  }

  const queues = [];
  for (const name of (await queue.queues()).sort()) queues.push(await measure(name));
  const totals = {
    dead: await queue.failedCount(),
    workers: Object.keys(workers).length,
    live_workers: Object.keys(workers).filter(alive).length,
    ...Object.fromEntries(Object.entries(await queue.stats()).filter(([name]) => !name.includes(':')).map(([name, count]) => [name, Number(count)])),
  };
  const { version } = require('node-resque/package.json');
  console.log(JSON.stringify({ system: 'resque', version: `node-resque ${version}`, at_ms: Math.floor(now), totals, queues }));

  process.stdin.resume();
  process.stdin.on('end', () => process.exit());
}
