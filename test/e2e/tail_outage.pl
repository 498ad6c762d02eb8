# `pulse tail` tells an outage when it begins and when it is over, however often it has tried.
use strict;
use warnings FATAL => 'all';

use List::Util qw(max);
use Test::More;

use Pulse::Program;
use Pulse::Proxy;
use Pulse::Server;

my $node = start_server('main', settings => \%PATIENT);
my $proxy = Pulse::Proxy->start($node, 'proxy');
my %address = $proxy->address;
my $database = "host=$address{host} port=$address{port} dbname=postgres";
my $looks = q{SELECT EXISTS (SELECT FROM pg_stat_activity
    WHERE application_name = 'pulse' AND query LIKE '%ended_jobs%')};

# The lines so far of what it says of the outage.
sub told {
    my ($tail) = @_;
    return grep { !/answers again/ } $tail->lines->lines;
}

my $tail = Pulse::Program->start('tail', [ 'pulse', '-d', $database, 'tail' ], output => 'stderr');
wait_until($node, $looks, 'it looks');

subtest 'an outage' => sub {
    $proxy->network('cut');
    $proxy->wait_for_refusals(4);
    my @told = told($tail);
    my %of = map { $_ => 1 } @told;
    is(scalar @told, scalar keys %of, 'each reason is told once, however often it tries');
    cmp_ok(scalar @told, '>', 0, 'it is told');
    $proxy->wait_for_refusals(2);
    is(scalar told($tail), scalar @told, 'and not again a moment later');
    $proxy->network('open');
    $tail->lines->wait_for('its end', sub { $_[0] eq 'pulse: the database answers again' });
    pass('the end is told');
};

subtest 'the next outage' => sub {
    my $before = $tail->lines->position;
    $proxy->network('cut');
    $proxy->wait_for_refusals(1);
    $tail->lines->wait_for('the outage', sub { $_[0] =~ m{^pulse: } }, from => $before);
    pass('is news');
    $proxy->network('open');
    $tail->lines->wait_for('its end', sub { $_[0] eq 'pulse: the database answers again' },
        from => $before);
    pass('so is its end');
};

# Ends its session, and further ones as soon as they look; returns how old the oldest of those
# became, in seconds.
sub end_sessions {
    my @ages;
    for (1 .. 3) {
        wait_until($node, $looks, 'it looks again');
        push @ages, value($node, q{SELECT extract(epoch FROM clock_timestamp() - a.backend_start)
            FROM pg_stat_activity AS a, pg_terminate_backend(a.pid, 60000)
            WHERE a.application_name = 'pulse'});
    }
    return max(@ages[ 1 .. $#ages ]);
}

subtest 'sessions that are ended one after the other' => sub {
    my ($before, $oldest);
    # One that a busy machine lets live for a second looks twice: the outage is over then.
    do {
        $before = $tail->lines->position;
        $oldest = end_sessions();
        $tail->lines->wait_for('the end', sub { $_[0] eq 'pulse: the database answers again' },
            from => $before);
    } while ($oldest >= 1);
    my @lines = ($tail->lines->lines)[ $before .. $tail->lines->position - 1 ];
    is(scalar(grep { /answers again/ } @lines), 1, 'are one outage') or diag(@lines);
};

done_testing();
