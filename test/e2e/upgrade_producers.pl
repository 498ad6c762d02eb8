# P11: jobs that 0.1.0 knows no producer of go on after the update, named by every producer; what is
# added then belongs to its role, and roles that were joined before the update go on as one shop.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;

my $node = new_server('main');
$node->start;
my $admin = Pulse::Session->new($node);
$admin->query($_) for
    q{CREATE EXTENSION pg_pulse VERSION '0.1.0'},
    'CREATE ROLE web', 'CREATE ROLE runner', 'CREATE ROLE cron', 'CREATE ROLE outsider';

# As an administrator of 0.1.0 grants.
my @producers = qw(web runner cron outsider);
my $add_job = 'pulse.add_job(text, json, text, timestamptz, int, text, int, text[], text)';
my $roles = join ', ', @producers;
$admin->query($_) for
    "GRANT USAGE ON SCHEMA pulse TO $roles",
    "GRANT EXECUTE ON FUNCTION $add_job, pulse.remove_job(text) TO $roles";


# The code with which a role is refused; an empty text if it is not.
sub refusal_of {
    my ($role, $statement) = @_;
    $admin->query("SET ROLE $role");
    my $code = $admin->refusal($statement);
    $admin->query('RESET ROLE');
    return $code;
}

sub answer_to {
    my ($role, $statement) = @_;
    $admin->query("SET ROLE $role");
    my $answer = $admin->query($statement);
    $admin->query('RESET ROLE');
    return $answer;
}

sub add { return "SELECT id FROM pulse.add_job('mail', job_key => '$_[0]')" }

my %of_old = map { $_ => answer_to($_, add("old $_")) } @producers;
my $shared = answer_to('web', add('shared'));
is(answer_to('cron', add('shared')), $shared, 'with 0.1.0 another producer replaces a job');

# Joined while 0.1.0 is installed; the outsider is left out.
$admin->query($_) for
    'CREATE ROLE shop', "GRANT EXECUTE ON FUNCTION $add_job TO shop",
    'GRANT shop TO web, runner, cron';
$admin->query('ALTER EXTENSION pg_pulse UPDATE');
$admin->query(q{SELECT pulse.grant_producer('shop')});

is($admin->query('SELECT count(*) FROM pulse.job WHERE added_by IS NULL'), 5,
    'jobs from before the update have no producer');
like($admin->query(q{SELECT detail FROM pulse.doctor() WHERE finding = 'jobs without a producer'}),
    qr/^5 of the 1,000 oldest/, 'which doctor() counts');
is(answer_to('cron', add('shared')), $shared, 'they are replaced as before');
is(answer_to('outsider', add('old web')), $of_old{web}, 'by every producer');
is(answer_to('outsider', q{SELECT (pulse.remove_job('old cron')).id}), $of_old{cron},
    'and removed');

my $new = answer_to('web', add('new'));
is(answer_to('cron', add('new')), $new, 'roles of one shop replace each other\'s new jobs');
is(answer_to('runner', q{SELECT (pulse.remove_job('new')).id}), $new, 'and remove them');
$new = answer_to('web', add('new'));
is(refusal_of('outsider', add('new')), '42501', 'a role that was left out does not');
is(answer_to('outsider', q{SELECT (pulse.remove_job('new')).id}), '', 'and removes none of them');
is($admin->query("SELECT added_by FROM pulse.job WHERE id = $new"), 'web', 'each has its role');

$admin->query(q{DELETE FROM pulse.job WHERE added_by IS NULL});
is($admin->query(q{SELECT count(*) FROM pulse.doctor() WHERE finding = 'jobs without a producer'}),
    0, 'once those from before the update have ended, doctor() is content');

subtest 'a role that was dropped' => sub {
    answer_to('outsider', add('left'));
    $admin->query($_) for "REVOKE ALL ON FUNCTION $add_job, pulse.remove_job(text) FROM outsider",
        'REVOKE ALL ON SCHEMA pulse FROM outsider', 'DROP ROLE outsider';
    is(refusal_of('web', add('left')), '42501', 'leaves jobs that no producer names');
    like($admin->query(q{SELECT detail FROM pulse.doctor()
            WHERE finding = 'producer without a role'}),
        qr/^Role outsider, which added 1 of/, 'and that doctor() counts');
    isnt($admin->query(add('left')), '', 'but the owner does');
};

$admin->quit;
expect_healthy($node);
done_testing();
