# pg-boss's side of a benchmark: installed from npm, filled, and run.
package Bench::PgBoss;

use strict;
use warnings;

use Bench::Npm;
use Bench::Server;

use constant TABLE => 'pgboss.job';
# Completed jobs stay in the table.
use constant LEFT => 'SELECT count(*) FROM ' . TABLE . " WHERE state < 'completed'";

# A verb of pgboss/queue.mjs, in so many processes.
sub command {
    my ($at, $processes, @arguments) = @_;
    return Bench::Npm::node_first($at) . "cd '$at->{build}/pgboss' && "
      . "export BENCH_PG_BOSS_URL='postgresql://$ENV{PGUSER}\@/pgboss?host=$ENV{PGHOST}' && "
      . "for i in \$(seq $processes); do node queue.mjs @arguments & done; wait";
}

# The database is called pgboss.
sub create {
    my ($at) = @_;
    my $target = Bench::Npm::install($at, 'pgboss');
    Bench::Server::command("cp '$at->{here}/tasks/idle.mjs' '$target'");
    Bench::Server::command('createdb pgboss');
    Bench::Server::command(command($at, 1, 'create') . " >>'$at->{log}' 2>&1");
    return;
}

sub fill {
    my ($at, $jobs) = @_;
    Bench::Server::sql('pgboss', 'TRUNCATE ' . TABLE);
    Bench::Server::command(command($at, 1, 'fill', $jobs) . " >>'$at->{log}' 2>&1");
    Bench::Server::sql('pgboss', 'ANALYZE ' . TABLE);
    return;
}

1;
