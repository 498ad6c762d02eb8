# A throw-away server of the staged build for one benchmark, and what is asked of it. Flushes are
# on; all else is at its default but for what a benchmark says.
package Bench::Server;

use strict;
use warnings;
use IO::Handle ();

sub command {
    my ($command) = @_;
    my $output = `$command`;
    die "bench: failed: $command\n" if $? != 0;
    chomp $output;
    return $output;
}

# Runs the work with the environment of a server that is there meanwhile, and its name.
sub run_with {
    my ($at, $name, $settings, $work) = @_;
    my $cluster = $at->{cluster};
    my $pid = $$;
    my $stop = sub { system($cluster, 'stop', $name) if $$ == $pid };
    local $SIG{INT} = local $SIG{TERM} = sub { $stop->(); exit 130 };
    system($cluster, 'start', $name, '--fsync', map { ('--set', $_) } @$settings) == 0
      or die "bench: no server\n";
    local %ENV = %ENV;
    my $result = eval {
        for (split /\n/, command("'$cluster' env $name | bash -c '. /dev/stdin; env'")) {
            $ENV{$1} = $2 if /^(PG\w+|PATH|PULSE_CLUSTER)=(.*)$/;
        }
        $work->() // 1;
    };
    my $error = $@;
    $stop->();
    die $error if !defined $result;
    return $result;
}

sub sql {
    my ($database, $sql) = @_;
    $sql =~ s/'/'\\''/g;
    return command("psql -XqAt -v ON_ERROR_STOP=1 -d $database -c '$sql'");
}

# A session that has begun a transaction and leaves it open, holding back what others could vacuum,
# until it is let go. $at->{holders} counts such sessions.
sub hold {
    my ($at, $database, $begin) = @_;
    open my $session, '|-', "psql -XqAt -v ON_ERROR_STOP=1 -d $database >/dev/null"
      or die "bench: psql: $!\n";
    print {$session} "$begin;\n";
    $session->flush;
    $at->{holders}++;
    my $begun = q{SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'};
    while (sql('postgres', $begun) < $at->{holders}) { }
    return $session;
}

sub let_go {
    my ($at, $session) = @_;
    print {$session} "ROLLBACK;\n";
    close $session or die "bench: the session that held failed\n";
    $at->{holders}--;
    return;
}

# Processor time of the server in seconds: the postmaster's own, its living children's, and those it
# has reaped.
sub processor_seconds {
    my $postmaster = sql('postgres', 'SHOW data_directory');
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

# How many sessions there are, this one not counted.
sub sessions {
    return sql('postgres', q{SELECT count(*) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()});
}

# What the server has counted so far. A session reports at its end, so all others have to be gone,
# but for as many as were there before.
sub counters {
    my ($database, $staying) = @_;
    while (sessions() > $staying) { }
    my ($bytes, $records, $buffers) = split /\|/, sql('postgres', qq{SELECT wal_bytes, wal_records,
        (SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = '$database')
        FROM pg_stat_wal});
    return { wal_bytes => $bytes, wal_records => $records, buffers => $buffers };
}

sub settings {
    my @names = qw(server_version fsync synchronous_commit full_page_writes wal_compression
                   shared_buffers max_wal_size shared_preload_libraries);
    return { (map { ($_ => sql('postgres', "SHOW $_")) } @names),
             cores => command('nproc'), kernel => command('uname -sr') };
}

1;
