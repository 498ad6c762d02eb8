# The statement that adds jobs by one call: both queues call it add_jobs, and their specifications
# have the same fields in the same order.
package Bench::Jobs;

use strict;
use warnings;

# The fields after the task and the payload: queue_name, run_at, max_attempts, job_key, priority,
# flags; each an expression in which i counts the jobs.
sub add_statement {
    my ($schema, $jobs, %field) = @_;
    my ($task, $queue, $run_at, $priority) =
      ($field{task} // q{'no_op'}, @field{qw(queue run_at priority)});
    $_ //= 'NULL' for $queue, $run_at, $priority;
    return qq{SELECT count(*) FROM $schema.add_jobs(ARRAY(SELECT ROW($task,
        json_build_object('id', i), $queue, $run_at, NULL, NULL, $priority, NULL)
        ::$schema.job_spec FROM generate_series(1, $jobs) AS i))};
}

1;
