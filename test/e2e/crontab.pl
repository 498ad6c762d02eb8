# pulse-worker --crontab: the file is what the database schedules, across SIGHUP, mistakes and two
# releases side by side.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant { DRAINED => 0, CONFIGURATION => 78 };

# A minute counts as missed after two sweep intervals.
my $node = start_server('main', settings => { %PATIENT, 'pulse.sweep_interval' => '60s' });
my $tasks = Pulse::Tasks->new(work => 'tell "got $(cat)"');
my $folder = PostgreSQL::Test::Utils::tempdir('crontab');
my $started = 0;

sub write_file {
    my ($name, $text) = @_;
    open my $handle, '>', "$folder/$name" or die "$folder/$name: $!";
    print $handle $text;
    close $handle or die "$folder/$name: $!";
    return "$folder/$name";
}

sub start {
    my ($file, @options) = @_;
    return Pulse::Worker->start($node, 'worker-' . ++$started, tasks => $tasks,
        options => [ '--crontab', $file, @options ]);
}

sub stored {
    return value($node, q{SELECT string_agg(name || CASE WHEN paused THEN ' paused' ELSE '' END,
        ', ' ORDER BY name) FROM pulse.schedule});
}

sub reload {
    my ($worker, $event) = @_;
    my $from = $worker->lines->position;
    $worker->signal('HUP');
    return $worker->wait_for($event, from => $from);
}

my $each = "* * * * * work ?id=each&fill=10m {box: 'sales'}\n";
my $file = write_file('crontab', "${each}0 0 1 1 * rare\n");
my $worker = start($file);
$worker->wait_for('crontab_loaded', items => 2, changed => 2);
is(stored(), 'each, rare', 'a worker that starts loads its file');

value($node, q{UPDATE pulse.schedule SET next_due = date_trunc('minute', now()) - interval '3 min'
    WHERE name = 'each'});
value($node, 'SELECT pulse.sweep()');
# A minute that begins by itself meanwhile has a job too.
my $filled = $tasks->lines->wait_for('a job of a missed minute',
    sub { $_[0] =~ /^got .*"backfilled": ?true/ });
like($filled, qr/"box": ?"sales"/, 'its jobs have the payload of the file');
like($filled, qr/"_cron": ?\{"ts": ?"\d{4}-\d\d-\d\dT\d\d:\d\d:00\.000Z", ?"backfilled": ?true\}/,
    'and the due time as Graphile Worker gives it');

write_file('crontab', $each);
is(reload($worker, 'crontab_loaded')->{changed}, 1, 'SIGHUP reads it again');
is(stored(), 'each, rare paused', 'what it leaves is paused');

write_file('crontab', "* * * * * work ?id=each\nnonsense\n");
like(reload($worker, 'crontab_refused')->{reason}, qr/line 2 has the minute 'nonsense'/,
    'a mistake is told');
is(stored(), 'each, rare paused', 'and changes nothing');

my $older = start(write_file('older', "0 0 1 1 * rare\n$each"));
$older->wait_for('crontab_loaded', changed => 1);
is(stored(), 'each, rare', 'a worker of the release before resumes what it names');

my $apart = start(write_file('apart', "0 1 * * * other\n"), '--crontab-set', 'apart');
$apart->wait_for('crontab_loaded');
is(stored(), 'each, other, rare', 'another set stands beside it');

my $once = start($file = write_file('once', "0 2 * * * once\n"), '--crontab-set', 'once', '--once');
is($once->wait_exit, DRAINED, 'a worker that runs once');
is(stored(), 'each, once, other, rare', 'loads its file as well');

for my $case (
    [ write_file('bad', "61 * * * * work\n"), qr/--crontab: .*bad: line 1 has the minute '61'/ ],
    [ write_file('red', "\e[31m * * * * work\n"), qr/line 1 has the minute '\\x1b\[31m'/ ],
    [ "$folder/none", qr/--crontab: cannot read .*none: No such file/ ])
{
    my ($path, $reason) = @$case;
    my $refused = start($path);
    is($refused->wait_exit, CONFIGURATION, 'a file that cannot be read ends the worker');
    like(join("\n", $refused->lines->lines), $reason, 'which names the place');
}

value($node, q{CREATE ROLE poor LOGIN; SELECT pulse.grant_worker('poor')});
{
    local $ENV{PGUSER} = 'poor';
    my $poor = start($file, '--crontab-set', 'once');
    is($poor->wait_exit, CONFIGURATION, 'a role without grant_scheduler');
    like($poor->wait_for('refused')->{reason}, qr/SELECT pulse\.grant_scheduler\('poor'\)/,
        'is told what it lacks');
}
value($node, q{SELECT pulse.grant_scheduler('poor')});
{
    local $ENV{PGUSER} = 'poor';
    my $rich = start($file, '--crontab-set', 'once');
    $rich->wait_for('crontab_loaded', changed => 0);
    $rich->signal('TERM');
    is($rich->wait_exit, DRAINED, 'and loads its file with it');
}

value($node, q{SELECT pulse.schedule('mine', 'work', '@daily')});
my $greedy = start(write_file('greedy', "0 0 * * * work ?id=mine\n"), '--crontab-set', 'greedy');
is($greedy->wait_exit, CONFIGURATION, 'a schedule of a call is not taken over');
like($greedy->wait_for('refused')->{reason}, qr/schedule 'mine' is not of a crontab/, 'and named');

for ($worker, $older, $apart) {
    $_->signal('TERM');
    is($_->wait_exit, DRAINED, $_->name . ' ends in order');
}
expect_healthy($node);
done_testing();
