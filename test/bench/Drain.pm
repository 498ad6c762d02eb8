# The drain: both queues are filled alike and drained in turn on one server, each from a database of
# its own, and the ratio is of neighbours, so that what else the machine does hits both.
package Drain;

use strict;
use warnings;
use File::Path qw(make_path);
use Getopt::Long qw(GetOptionsFromArray);
use JSON::PP ();
use List::Util qw(max min sum);
use Time::HiRes qw(time);

use constant SERVER => 'bench-drain';
my ($place, $option);

sub read_options {
    my @arguments = @_;
    my %option = (repeats => 5, jobs => 200_000, connections => 4, batch => 500,
                  commit => 'together', processes => 4, concurrency => 500, alone => 0);
    GetOptionsFromArray(\@arguments, \%option, qw(repeats=i jobs=i connections=i batch=i commit=s
                        processes=i concurrency=i alone)) or return;
    return if @arguments || grep { /^\d+$/ && $_ < 1 } @option{qw(repeats jobs connections batch)};
    return \%option;
}

sub command {
    my ($command) = @_;
    my $output = `$command`;
    die "bench: failed: $command\n" if $? != 0;
    chomp $output;
    return $output;
}

sub sql {
    my ($database, $sql) = @_;
    $sql =~ s/'/'\\''/g;
    return command("psql -XqAt -v ON_ERROR_STOP=1 -d $database -c '$sql'");
}

# --- the two that are measured -------------------------------------------------------------------

my %fill = (
    pulse => q{SELECT count(*) FROM pulse.add_jobs(ARRAY(SELECT ROW('no_op',
        json_build_object('id', i), NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec
        FROM generate_series(1, %d) AS i))},
    graphile => q{SELECT count(*) FROM graphile_worker.add_jobs(ARRAY(SELECT json_populate_record(
        NULL::graphile_worker.job_spec, json_build_object('identifier', 'no_op', 'payload',
        json_build_object('id', i))) FROM generate_series(1, %d) AS i))},
);
my %table = (pulse => 'pulse.job', graphile => 'graphile_worker._private_jobs');

sub drain_command {
    my ($system) = @_;
    return "'$place->{build}/client/bench-drain' --connections $option->{connections}"
      . " --batch $option->{batch} --commit $option->{commit}" if $system eq 'pulse';
    my $one = "'$place->{build}/graphile/node_modules/.bin/graphile-worker' --once";
    return "cd '$place->{build}/graphile' && "
      . "for i in \$(seq $option->{processes}); do $one & done; wait";
}

sub install_graphile {
    die "bench: the rival needs node and npm; --alone goes without\n"
      if system("command -v node npm >/dev/null 2>&1") != 0;
    my $target = "$place->{build}/graphile";
    make_path($target);
    command("cp -R '$place->{here}/graphile/.' '$target'");
    command("cd '$target' && npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1");
    command("createdb graphile");
    $ENV{BENCH_GRAPHILE_URL} = "postgresql://$ENV{PGUSER}\@/graphile?host=$ENV{PGHOST}";
    $ENV{BENCH_CONCURRENCY} = $option->{concurrency};
    $ENV{BENCH_LOCAL_QUEUE} = $option->{batch};
    $ENV{NO_LOG_SUCCESS} = 1;
    command("cd '$target' && node_modules/.bin/graphile-worker --schema-only >schema.log 2>&1");
    return;
}

# --- measuring -----------------------------------------------------------------------------------

# CPU seconds of the server: the postmaster's own, its living children's, and those it has reaped.
sub server_cpu {
    my ($postmaster) = sql('postgres', 'SHOW data_directory');
    $postmaster = command("head -n 1 '$postmaster/postmaster.pid'");
    my $ticks = 0;
    for my $file (glob '/proc/[0-9]*/stat') {
        open my $handle, '<', $file or next;
        my $line = <$handle> // next;
        my ($pid) = $line =~ /^(\d+)/;
        my @field = split ' ', $line =~ s/^.*\)//r;
        $ticks += $field[11] + $field[12] if $pid == $postmaster || $field[1] == $postmaster;
        $ticks += $field[13] + $field[14] if $pid == $postmaster;
    }
    return $ticks / 100;
}

sub client_cpu {
    my (undef, undef, $user, $system) = times;
    return $user + $system;
}

sub timed {
    my ($command) = @_;
    my %before = (cpu => client_cpu(), server => server_cpu(),
                  wal => sql('postgres', q{SELECT pg_current_wal_insert_lsn() - '0/0'}));
    my $start = time;
    command("($command) >>'$place->{build}/drain.log' 2>&1");
    my $seconds = time - $start;
    return {
        seconds => $seconds,
        client_cpu => client_cpu() - $before{cpu},
        server_cpu => server_cpu() - $before{server},
        wal => sql('postgres', q{SELECT pg_current_wal_insert_lsn() - '0/0'}) - $before{wal},
        load => command('cut -d" " -f1 /proc/loadavg'),
    };
}

# One drain. Dead rows of the one before are vacuumed away, and the checkpoint comes before the
# jobs, so that none falls into the drain and pages were logged whole already, for both alike.
sub drain {
    my ($system) = @_;
    my $database = $system eq 'pulse' ? 'postgres' : 'graphile';
    sql($database, "VACUUM (ANALYZE) $table{$system}");
    sql($database, 'CHECKPOINT');
    my $startup = timed(start_command($system))->{seconds};
    sql($database, sprintf $fill{$system}, $option->{jobs});
    my $run = timed(drain_command($system));
    my $left = sql($database, "SELECT count(*) FROM $table{$system}");
    die "bench: $system left $left jobs, see $place->{build}/drain.log\n" if $left != 0;
    $run->{startup} = $startup;
    return $run;
}

sub median {
    my @sorted = sort { $a <=> $b } @_;
    return ($sorted[$#sorted / 2] + $sorted[@sorted / 2]) / 2;
}

# --- telling -------------------------------------------------------------------------------------

sub row {
    my ($name, @runs) = @_;
    my @rate = map { $_->{rate} } @runs;
    my $per_job = 1e6 / $option->{jobs};
    printf "%-10s %9.0f %9.0f %9.0f   %8.1f %8.1f %8.0f\n", $name, median(@rate), min(@rate),
      max(@rate), median(map { $_->{server_cpu} * $per_job } @runs),
      median(map { $_->{client_cpu} * $per_job } @runs),
      median(map { $_->{wal} / $option->{jobs} } @runs);
    return;
}

sub report {
    my ($settings, $runs) = @_;
    print "\n$_ = $settings->{$_}\n" =~ s/^\n//r for sort keys %$settings;
    printf "\n%d jobs, batches of %d; %d connections; rival: %d processes of %d\n\n",
      @$option{qw(jobs batch connections processes concurrency)};
    print "              jobs/s     least  greatest   CPU us per job: bytes of\n";
    print "              median                         server   client      WAL\n";
    row($_, @{$runs->{$_}}) for sort { $b cmp $a } keys %$runs;
    my %result = (settings => $settings, options => $option, runs => $runs);
    if (!$option->{alone}) {
        my @ratio = map { $runs->{pulse}[$_]{rate} / $runs->{graphile}[$_]{rate} }
          0 .. $option->{repeats} - 1;
        $result{ratio} =
          { median => median(@ratio), least => min(@ratio), greatest => max(@ratio) };
        printf "\nratio: %.2f (%.2f to %.2f)\n", @{$result{ratio}}{qw(median least greatest)};
    }
    open my $handle, '>', "$place->{build}/drain.json" or die "bench: $!\n";
    print {$handle} JSON::PP->new->canonical->pretty->encode(\%result);
    close $handle;
    return;
}

sub settings {
    my @names = qw(server_version fsync synchronous_commit full_page_writes wal_compression
                   shared_buffers max_wal_size);
    return { (map { ($_ => sql('postgres', "SHOW $_")) } @names),
             cores => command('nproc'), kernel => command('uname -sr') };
}

sub measure {
    my @systems = $option->{alone} ? ('pulse') : qw(pulse graphile);
    sql('postgres', 'CREATE EXTENSION pg_pulse');
    install_graphile() if !$option->{alone};
    my %runs;
    drain($_) for @systems;    # warms caches, counts for nothing
    for my $repeat (1 .. $option->{repeats}) {
        for my $system (@systems) {
            my $run = drain($system);
            printf "%d %-10s %6.2f s, start and stop %.2f s (load %s)\n", $repeat, $system,
              @{$run}{qw(seconds startup load)};
            push @{$runs{$system}}, $run;
        }
    }
    rate($runs{$_}) for @systems;
    report(settings(), \%runs);
    return;
}

# As its authors do: the start of one process, although several start at once.
sub start_command {
    my ($system) = @_;
    return drain_command($system) =~ s{seq \d+}{seq 1}r;
}

# Jobs per second without the time to start and stop, which is a median because it is short.
sub rate {
    my ($runs) = @_;
    my $startup = median(map { $_->{startup} } @$runs);
    $_->{rate} = $option->{jobs} / ($_->{seconds} - $startup) for @$runs;
    return;
}

sub run {
    ($place, $option) = @_;
    my $cluster = $place->{cluster};
    my $pid = $$;
    my $stop = sub { system($cluster, 'stop', SERVER) if $$ == $pid };
    local $SIG{INT} = local $SIG{TERM} = sub { $stop->(); exit 130 };
    system($cluster, 'start', SERVER, '--fsync') == 0 or die "bench: no server\n";
    my $done = eval {
        for (split /\n/, command("'$cluster' env @{[SERVER]} | bash -c '. /dev/stdin; env'")) {
            $ENV{$1} = $2 if /^(PG\w+|PATH|PULSE_CLUSTER)=(.*)$/;
        }
        measure();
        1;
    };
    my $error = $@;
    $stop->();
    die $error if !$done;
    return 0;
}

1;
