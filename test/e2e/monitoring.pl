# What is watched with: promtool takes the metrics of worker and console, the alerts do what their
# tests say, and no panel, alert or page names what is not there.
use strict;
use warnings FATAL => 'all';

use HTTP::Tiny;
use JSON::PP qw(decode_json);
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Prometheus;
use Pulse::Promtool;
use Pulse::Serve;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my $folder = 'console/deploy';
my $node = start_server('main', settings => \%QUICK);
my $tasks = Pulse::Tasks->new(run => 'true');
my $worker = Pulse::Worker->start($node, 'w', tasks => $tasks,
    options => [ '--http', '127.0.0.1:0' ]);
my $serve = start_serve($node);

# Each metric has a line once something has happened: a job, a lost session, and another worker.
value($node, q{SELECT pulse.add_job('run'); SELECT pulse.add_job('misspelt')});
$worker->wait_for('completed');
value($node, q{SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE application_name LIKE 'pulse-worker w%'});
$worker->wait_for('reconnecting');

my $http = HTTP::Tiny->new(timeout => $PostgreSQL::Test::Utils::timeout_default);
my %page = (
    worker => 'http://' . $worker->wait_for('serving')->{http} . '/metrics',
    console => "$serve->{url}/metrics");
my (%text, %known);
for my $of (sort keys %page) {
    my $answer = $http->get($page{$of});
    is($answer->{status}, 200, "the metrics of the $of");
    $text{$of} = $answer->{content};
    $known{$_} = 1 for Pulse::Prometheus->parse($text{$of})->names;
}
is(Pulse::Prometheus->parse($text{console})->value('pulse_queue_unserved_tasks'), 1,
    'the console counts tasks that no worker serves');

sub unknown_in {
    my ($text) = @_;
    my %named = map { s/_(?:bucket|sum|count)$//r => 1 } $text =~ /\b(pulse_[a-z_]+)/g;
    return join ' ', grep { !$known{$_} } sort keys %named;
}

subtest 'the dashboard' => sub {
    my $dashboard = decode_json(slurp_file("$folder/grafana-dashboard.json"));
    my (%ids, $queries);
    for my $panel (@{ $dashboard->{panels} }) {
        ok(!$ids{ $panel->{id} }++, "$panel->{title} has an id of its own");
        unlike($panel->{title}, qr/\bhalf\b/, "$panel->{title} names a median as the pages do");
        for my $target (@{ $panel->{targets} // [] }) {
            is(unknown_in($target->{expr}), '', "$panel->{title} shows what there is");
            $queries++;
        }
    }
    cmp_ok($queries, '>', 20, 'it has queries');
    is(unknown_in($_->{query}), '', "so does its variable $_->{name}")
      for @{ $dashboard->{templating}{list} };
};

subtest 'the alerts' => sub {
    my $rules = slurp_file("$folder/alerts.yaml");
    my @alerts = $rules =~ /^ +- alert: (\w+)$/mg;
    cmp_ok(scalar @alerts, '>=', 10, 'there are some');
    is(unknown_in($rules =~ s/^\s*#.*$//mgr), '', 'their metrics are there');
    my $operations = slurp_file('docs/operations.md');
    for my $alert (@alerts) {
        like($operations, qr/^#+ $alert$/m, "docs/operations.md has what to do about $alert");
        like($rules, qr/docs\/operations\.md#\L$alert\E$/m, 'which the alert names');
    }
};

# They are about Patroni's metrics.
subtest 'the alerts of the recipe for Patroni' => sub {
    my $rules = slurp_file('worker/deploy/patroni/alerts.yaml');
    my $page = slurp_file('docs/recipes/high-availability.md');
    for my $alert ($rules =~ /^ +- alert: (\w+)$/mg) {
        like($page, qr/^#+ $alert$/m, "the page has what to do about $alert");
        like($rules, qr/docs\/recipes\/high-availability\.md#\L$alert\E$/m,
            'which the alert names');
    }
};

SKIP: {
    skip 'no promtool here: make packages FOR=test', 6 if !has_promtool();
    for my $of (sort keys %text) {
        my $checked = promtool([ 'check', 'metrics' ], $text{$of});
        is($checked->{status} . $checked->{said}, '0', "promtool takes the metrics of the $of");
    }
    for my $rules ($folder, 'worker/deploy/patroni') {
        my $checked = promtool([ 'check', 'rules', "$rules/alerts.yaml" ]);
        is($checked->{status}, 0, "and the alerts of $rules") or diag $checked->{said};
        my $tested = promtool([ 'test', 'rules', "$rules/alerts.test.yaml" ]);
        is($tested->{status}, 0, 'which do what their tests say') or diag $tested->{said};
    }
}

$serve->{program}->signal('TERM');
$serve->{program}->wait_exit;
$worker->signal('TERM');
$worker->wait_exit;
done_testing();
