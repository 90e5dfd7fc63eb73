# A Sidekiq installation in trouble, made and measured by Sidekiq itself: the scene for the queue tests.
# Usage: ruby sidekiq_scene.rb REDIS-URL   (Sidekiq 6, 7 and 8)
#
# Prints one line of JSON, what Sidekiq's own API says, then keeps everything as it is until stdin is closed.
# The schedulers of the workers are off, as after a crash of their threads: overdue jobs stay where they are.
return if defined?(LongJob) # the command line of Sidekiq requires this file once more

ENV["REDIS_URL"] = ARGV.fetch(0)
require "sidekiq"
require "sidekiq/api"
require "json"
Redis.silence_deprecations = true if defined?(Redis) # Sidekiq 6 with a late redis gem

# The answer alone goes to stdout: Sidekiq logs there.
ANSWER = STDOUT.dup
STDOUT.reopen(File::NULL)

class LongJob
  include Sidekiq::Job

  def perform(*) = sleep
end

class FailingJob
  include Sidekiq::Job

  def perform(*) = raise(ArgumentError, "no such invoice")
end

# Lets the library write jobs as of some time ago, in the format of its version.
module Clock
  class << self
    attr_accessor :behind

    def ago(seconds)
      self.behind = seconds
      yield
    ensure
      self.behind = 0
    end
  end
  self.behind = 0

  module OfTime
    def now(**) = super - Clock.behind
  end

  module OfProcess
    def clock_gettime(clock, unit = :float_second)
      return super if clock != Process::CLOCK_REALTIME || Clock.behind.zero?

      factor = {second: 1, float_second: 1.0, millisecond: 1_000, float_millisecond: 1e3, microsecond: 1_000_000}
      super - factor.fetch(unit).then { |one| one.is_a?(Integer) ? (Clock.behind * one).round : Clock.behind * one }
    end
  end
  Time.singleton_class.prepend(OfTime)
  Process.singleton_class.prepend(OfProcess)
end

# A real worker process, as `sidekiq -c 2 -q …` starts it. It ends with this script, however that ends.
PARENT_LIVES, KEPT_OPEN = IO.pipe
$children = []
def worker(*queues)
  child = fork do
    [KEPT_OPEN, ANSWER].each(&:close)
    STDIN.reopen(File::NULL)
    Thread.new { PARENT_LIVES.read; exit!(0) }
    require "sidekiq/cli"
    Sidekiq::Scheduled::Poller.define_method(:start) {}
    Sidekiq::Launcher.send(:remove_const, :BEAT_PAUSE)
    Sidekiq::Launcher.const_set(:BEAT_PAUSE, 0.3) # else a running job is to be seen only at the next beat, in 10 s
    cli = Sidekiq::CLI.instance
    cli.parse(["-c", "2", "-r", File.expand_path(__FILE__), *queues.flat_map { |queue| ["-q", queue] }])
    cli.run
  end
  $children << child
  child
end

def wait_until(what)
  300.times { yield ? return : sleep(0.1) }
  abort "sidekiq scene: #{what} did not happen"
end

def push(klass, queue:, ago: 0, **item)
  Clock.ago(ago) do
    Sidekiq::Client.push({"class" => klass, "queue" => queue, "args" => []}.merge(item.transform_keys(&:to_s)))
  end
end

# The queue and the start of every job in flight; a hash before Sidekiq 7.
def works
  Sidekiq::WorkSet.new.map { |_, _, work| work.is_a?(Hash) ? work.values_at("queue", "run_at") : [work.queue, work.run_at] }
end

def processes = Sidekiq::ProcessSet.new(false).to_a # false: do not clean up ghosts

live = worker("critical", "default", "mailers")
ghost = worker("reports")
wait_until("the start of two workers") { processes.size == 2 }

# Failed for real: two to retry, of which one is overdue, and two that are dead for good.
%w[default mailers].each { |queue| push(FailingJob, queue: queue, retry: true, args: [41]) }
%w[default default].each { |queue| push(FailingJob, queue: queue, retry: 0, args: [42]) }
wait_until("the failures") { Sidekiq::RetrySet.new.size == 2 && Sidekiq::DeadSet.new.size == 2 }
Sidekiq::RetrySet.new.each { |job| job.reschedule(Time.now.to_f + (job.queue == "default" ? -300.25 : 3600)) }

# In flight: both threads of the live worker, and one job of a worker that is then killed with its job.
2.times { |number| push(LongJob, queue: "critical", args: [number]) }
push(LongJob, queue: "reports")
wait_until("three jobs in flight") { works.size == 3 }
Process.kill(:KILL, ghost)
Process.wait(ghost)
$children.delete(ghost)
identity = processes.find { |process| process["pid"] == ghost }["identity"]
# A minute later its heartbeat would have expired, and only the set of processes would still name it.
Sidekiq.redis { |redis| %w[:work :workers].push("").each { |suffix| redis.unlink("#{identity}#{suffix}") } }

# Waiting, oldest first, so that the next to run is also the oldest.
[4000.5, 900, 5].each { |ago| push(LongJob, queue: "critical", ago: ago) }
40.times { |number| push(FailingJob, queue: "default", ago: 86_400 - number * 60, args: [number]) }
# An Active Job, which its adapter wraps; the adapter moved into Sidekiq itself with 8.
wrapper = Sidekiq::VERSION.to_i < 8 ? "ActiveJob::QueueAdapters::SidekiqAdapter::JobWrapper" : "Sidekiq::ActiveJob::Wrapper"
push(wrapper, queue: "mailers", ago: 120, wrapped: "InvoiceMailJob",
  args: [{"job_class" => "InvoiceMailJob", "arguments" => [7], "queue_name" => "mailers"}])
push(LongJob, queue: "low", ago: 60)

# Scheduled: two in the future and one overdue in each of two queues.
%w[default mailers].each do |queue|
  [3600, 7200].each { |seconds| push(LongJob, queue: queue, at: Time.now.to_f + seconds) }
  push(LongJob, queue: queue, ago: 1000, at: Time.now.to_f - 600)
end

# Pausing is part of Sidekiq Pro, which keeps the names in this set. Queue#paused? without Pro always says false.
Sidekiq.redis { |redis| redis.sadd("paused", ["low"]) }

wait_until("a calm state") { works.size == 2 && processes.sum { |process| process["busy"].to_i } == 2 }
seconds, microseconds = Sidekiq.redis { |redis| redis.respond_to?(:call) ? redis.call("TIME") : redis.time }
now = seconds.to_i + microseconds.to_i / 1e6
ms = ->(time) { time && ((now - time.to_f) * 1000).round }

queues = Sidekiq::Queue.all.map do |queue|
  of_queue = ->(jobs) { jobs.select { |job| job.queue == queue.name } }
  waiting = queue.to_a # newest first
  running = works.select { |name, _| name == queue.name }
  scheduled = of_queue.(Sidekiq::ScheduledSet.new)
  retries = of_queue.(Sidekiq::RetrySet.new)
  dead = of_queue.(Sidekiq::DeadSet.new)
  {
    name: queue.name,
    depth: queue.size,
    in_flight: running.size, # WorkSet#each
    scheduled: scheduled.size, # ScheduledSet#each, and Job#at for the overdue ones
    overdue: scheduled.count { |job| job.at.to_f < now },
    retry: retries.size, # RetrySet#each
    retry_overdue: retries.count { |job| job.at.to_f < now },
    dead: dead.size, # DeadSet#each
    oldest_dead_ms: ms.(dead.map { |job| job.at.to_f }.min),
    workers: processes.count { |process| process.queues.include?(queue.name) }, # ProcessSet#each, live ones only
    paused: queue.name == "low", # not from the API, see above
    oldest_age_ms: ms.(waiting.map { |job| job.enqueued_at.to_f }.min), # Job#enqueued_at
    head_age_ms: waiting.empty? ? nil : (queue.latency * 1000).round, # Queue#latency: of the next job to run
    oldest_in_flight_ms: ms.(running.map { |_, start| start.to_f }.min),
    head: waiting.last && {class: waiting.last.display_class.to_s, id: waiting.last.jid},
  }
end
stats = Sidekiq::Stats.new
ANSWER.puts({
  system: "sidekiq",
  version: Sidekiq::VERSION,
  at_ms: (now * 1000).floor,
  totals: {
    depth: stats.enqueued, in_flight: stats.workers_size, scheduled: stats.scheduled_size, retry: stats.retry_size,
    dead: stats.dead_size, processed: stats.processed, failed: stats.failed,
    workers: processes.size, ghosts: stats.processes_size - processes.size, # Stats#processes_size counts the ghosts too
  },
  queues: queues,
}.to_json)
ANSWER.flush

$stdin.read
$children.each { |child| Process.kill(:KILL, child) }
Process.waitall
