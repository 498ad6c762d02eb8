# Changes of many jobs in the pages of `pulse serve`: a request that does not say which jobs
# changes none, a question names what and where, its harmless answer has the focus, and a change of
# more than a thousand jobs is agreed to by their number, which counts for the jobs of the question.
use strict;
use warnings FATAL => 'all';
use utf8;

use HTTP::Tiny;
use Test::More;

use Pulse::Browser;
use Pulse::Console;
use Pulse::Serve;
use Pulse::Server;

my $node = start_server('main', settings => \%PATIENT);
value($node, 'CREATE ROLE an_operator LOGIN');
value($node, 'CREATE DATABASE shop_production');
$node->safe_psql('shop_production', q{CREATE EXTENSION pg_pulse;
    SELECT pulse.grant_operator('an_operator');
    SELECT pulse.add_job('mail') FROM generate_series(1, 12);
    SELECT pulse.add_job('ink') FROM generate_series(1, 3)});

sub here {
    my ($sql) = @_;
    return $node->safe_psql('shop_production', $sql);
}

# Waiting jobs, and operations on record.
sub standing {
    return here(q{SELECT (SELECT count(*) FROM pulse.job) || ' waiting, '
        || (SELECT count(*) FROM pulse.operation) || ' changes'});
}

my $serve = start_serve($node, database => 'shop_production', tokens => { ada => 'an_operator' });
my $browser = Pulse::Browser->start(base => $serve->{url});
$browser->go('/login');
$browser->fill('token', $serve->{secret}{ada});
$browser->click('Sign in', 'main');
$browser->wait_for_path(qr{^/$});

my $http = HTTP::Tiny->new(max_redirect => 0,
    default_headers => { Authorization => "Bearer $serve->{secret}{ada}" });

subtest 'a button of the chosen with no box ticked changes nothing' => sub {
    for my $list ('/jobs', '/jobs?task=ink', '/jobs?state=ready') {
        # Nothing offers to retry jobs that wait.
        for my $action ('Cancel', $list =~ /ready/ ? () : 'Retry') {
            $browser->go($list);
            $browser->click($action, '.bulk');
            my $said = qr/No job is chosen/;
            like($browser->wait_for($said), $said, "$action of $list");
            is($browser->js('return document.querySelectorAll("form button").length'), 1,
                'the page has no button but that which signs out');
            $browser->click('Back', 'main');
            $browser->wait_for_path(qr{^\Q$list\E$});
            is($browser->path, $list, 'and leads back to the list');
        }
    }
    is(standing(), '15 waiting, 0 changes', 'no job has changed');
};

subtest 'no request is about all jobs unless it says so' => sub {
    for my $action (qw(retry cancel fail reschedule)) {
        for my $which ('', '&chosen=1', '&chosen=1&task=mail', '&task=', '&tsak=mail', '&task=mail',
            '&state=ready', '&all=0', '&all=1&chosen=1', '&all=1&id=1') {
            my $url = "$serve->{url}/operations/new?action=$action$which";
            is($http->get($url)->{status}, 422, "the question of $action$which is refused");
            is($http->post_form($url, { priority => 3 })->{status}, 422, 'and so is its answer');
        }
    }
    is(pulse($node, 'cancel', '--yes')->{status}, 64, 'pulse refuses, too');
    is(pulse($node, 'cancel', '--yes', '--task', '')->{status}, 64,
        'with a filter that is empty');
    is(standing(), '15 waiting, 0 changes', 'no job has changed');
};

subtest 'a list without jobs has no buttons' => sub {
    $browser->go('/jobs?task=nothing');
    like($browser->wait_for(qr/No job meets/), qr/No job meets this filter/, 'there is none');
    unlike($browser->text, qr/The chosen|Cancel all|Retry all/, 'and nothing to press');
};

subtest 'a question names jobs and database, and keeping them has the focus' => sub {
    $browser->go('/jobs');
    $browser->click('Cancel all', '.bulk');
    my $asked = qr/^Cancel all 15 waiting jobs of shop_production\?$/m;
    like($browser->wait_for($asked), $asked, 'of all jobs');
    is($browser->wait_for_focus('Keep them'), 'Keep them',
        'the focus is on the answer that keeps the jobs');
    like($browser->text, qr/^Cancel 15 jobs/m, 'the other answer says the whole');
    $browser->press('Enter');
    $browser->wait_for_path(qr{^/jobs});
    is(standing(), '15 waiting, 0 changes', 'Enter changes nothing');
    $browser->go('/jobs?task=ink');
    $browser->click('Cancel all', '.bulk');
    $asked = qr/^Cancel all 3 waiting jobs of shop_production whose task is ink\?$/m;
    like($browser->wait_for($asked), $asked, 'of the filter of the list');
    $browser->go('/jobs?task=ink');
    $browser->js('for (const box of [...document.querySelectorAll("td.check input")].slice(0, 2))'
          . ' box.click()');
    $browser->click('Cancel', '.bulk');
    $asked = qr/^Cancel 2 jobs of shop_production\?$/m;
    like($browser->wait_for($asked), $asked, 'of those that were chosen');
    $browser->click('Cancel 2 jobs', '.question');
    $browser->wait_for(qr/cancel of 2 jobs/);
    is(standing(), '13 waiting, 1 changes', 'these are cancelled');
};

# Answers the question of cancelling all jobs of the task `many`, with what its page holds.
my $question = "$serve->{url}/operations/new?action=cancel&all=1&task=many";

sub hidden_fields {
    my ($page) = @_;
    my %field = $page =~ /<input type="hidden" name="([a-z_]+)" value="([^"]*)">/g;
    delete $field{csrf};
    return %field;
}

subtest 'a change of more than a thousand jobs is agreed to by their number' => sub {
    here(q{SELECT count(pulse.add_job('many')) FROM generate_series(1, 1001)});
    my %field = hidden_fields($http->get($question)->{content});
    is($field{asked}, 1001, 'the question holds the number');
    for my $typed ('', '1000', '1001x', '99999') {
        my $answer = $http->post_form($question, { %field, number => $typed });
        is($answer->{status}, 422, "'$typed' does not agree");
        like($answer->{content}, qr/the number was another/, 'which the page says');
    }
    is($http->post_form($question, { number => 1001 })->{status}, 422, 'nor the number alone');
    is(here(q{SELECT count(*) FROM pulse.job WHERE identifier = 'many'}), 1001, 'none has changed');

    # Jobs that are added between question and answer are none of the question.
    here(q{SELECT count(pulse.add_job('many')) FROM generate_series(1, 5)});
    is($http->post_form($question, { %field, number => '1,001' })->{status}, 303, 'it agrees');
    like(here(q{SELECT state || ' ' || changed FROM pulse.operation ORDER BY id DESC LIMIT 1}),
        qr/^(?:done|running) \d+$/, 'the change has begun');
    my ($id) = here('SELECT max(id) FROM pulse.operation');
    here("SELECT pulse.run_operation($id, 10000)") for 1 .. 2;
    is(here("SELECT changed FROM pulse.operation WHERE id = $id"), 1001, 'of those asked about');
    is(here(q{SELECT count(*) FROM pulse.job WHERE identifier = 'many'}), 5, 'later ones are kept');
};

subtest 'a number that has grown since is asked about again' => sub {
    here(q{DO $$ DECLARE worker bigint := (SELECT id FROM pulse.register_worker('w', '{many}'));
        BEGIN
          PERFORM pulse.add_job('many', max_attempts => 1) FROM generate_series(1, 1003);
          PERFORM pulse.permanently_fail_jobs(ARRAY(SELECT id FROM pulse.job
            WHERE identifier = 'many' ORDER BY id LIMIT 1001));
        END $$});
    my $retry = "$serve->{url}/operations/new?action=retry&all=1&task=many";
    my %field = hidden_fields($http->get($retry)->{content});
    is($field{asked}, 1001, 'so many have failed');
    # Added before the question, failed after it.
    here(q{SELECT pulse.permanently_fail_jobs(ARRAY(SELECT id FROM pulse.job
        WHERE identifier = 'many' ORDER BY id LIMIT 1))});
    my $answer = $http->post_form($retry, { %field, number => 1001 });
    is($answer->{status}, 422, 'the answer agrees to fewer');
    like($answer->{content}, qr/has grown since.*type 1,002 to agree/s, 'and is asked for again');
    is(here(q{SELECT count(*) FROM pulse.operation WHERE action = 'retry'}), 0, 'nothing began');
};

is_deeply([ $browser->notice ], [], 'no dialog, no error, and nothing that the policy forbids');
$browser->stop;
done_testing();
