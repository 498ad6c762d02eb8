# A figure of which the server saw a part is marked in each program.
use strict;
use warnings FATAL => 'all';

use HTTP::Tiny;
use Test::More;

use Pulse::Console;
use Pulse::Depths;
use Pulse::Prometheus;
use Pulse::Serve;
use Pulse::Server;

my $node = start_server('main', settings => \%PATIENT);
my $serve = start_serve($node);

sub page { my ($path) = @_; return HTTP::Tiny->new->get("$serve->{url}$path")->{content} }
sub metrics { return Pulse::Prometheus->parse(page('/metrics')) }

sub mark {
    my ($name, @labels) = @_;
    return metrics()->value("pulse_queue_${name}_estimated", @labels);
}

subtest 'ends of the last minute' => sub {
    value($node, q{INSERT INTO pulse.finished_job (id, identifier, payload, state, priority, run_at,
        attempts, max_attempts, crashes, revision, created_at, finished_at)
        SELECT -n, 'mail', '{}', CASE WHEN n < 5 THEN 'failed' ELSE 'cancelled' END
               ::pulse.finished_state, 0, now(), 1, 1, 0, 0, now(), now()
          FROM generate_series(1, 100) AS n});
    is(mark('ended_last_minute_jobs', 'state=failed'), 0, 'few are exact');
    like(page('/'), qr{<span class="name">Failed</span><span class="big">4</span>}, 'on the page');
    value($node, q{INSERT INTO pulse.finished_job (id, identifier, payload, state, priority, run_at,
        attempts, max_attempts, crashes, revision, created_at, finished_at)
        SELECT -n, 'mail', '{}', 'cancelled', 0, now(), 1, 1, 0, 0, now(),
               now() + interval '1 s' FROM generate_series(101, 10100) AS n});
    is(mark('ended_last_minute_jobs', "state=$_"), 1, "of a great many $_ ones are a part")
      for qw(failed quarantined cancelled expired);
    is(mark('ended_last_minute_jobs', 'state=completed'), 0, 'completed ones are counted');
    like(page('/'), qr{<span class="name">Failed</span><span class="big">0[+]</span>},
        'the page has a plus');
    like(pulse($node, 'overview')->{out}, qr/^cancelled last minute +10,000[+]$/m,
        'and so has the command');
};

subtest 'jobs that fall due within a minute' => sub {
    value($node, q{INSERT INTO pulse.job (identifier, queue_name, state, run_at)
        SELECT 'mail', 'post', 'parked', now() + interval '50 s' FROM generate_series(1, 100)});
    Pulse::Depths->new($node)->become_exact;
    is(mark('due_next_minute_jobs'), 0, 'few are exact');
    value($node, q{INSERT INTO pulse.job (identifier, queue_name, state, run_at)
        SELECT 'mail', 'post', 'parked', now() + interval '50 s' FROM generate_series(1, 100)});
    is(mark('due_next_minute_jobs'), 1, 'of many a part is marked');
    value($node, 'DELETE FROM pulse.job');
};

subtest 'jobs of a large flow' => sub {
    value($node, q{INSERT INTO pulse.flow (id, name) VALUES (1, 'small'), (2, 'large')});
    value($node, q{INSERT INTO pulse.flow_job (job_id, flow_id)
        SELECT -n, 1 + (n > 100)::int FROM generate_series(1, 10200) AS n});
    my $flows = page('/flows');
    like($flows, qr/>100<.*?small|small.*?>100</s, 'few are exact');
    like($flows, qr/>10,000[+]</, 'of many there are more');
    like(page('/flows/2'), qr/>10,000[+]</, 'also on the page of the flow');
    like(pulse($node, 'flows')->{out}, qr/large +10,000[+] /, 'and in a table');
};

subtest 'lists that end' => sub {
    my $worker = value($node, q{SELECT min(w.id) FROM generate_series(1, 299) AS n,
        LATERAL (SELECT id FROM pulse.register_worker('w' || n)) AS w});
    value($node, "SELECT pulse.add_job('mail') FROM generate_series(1, 199);
        SELECT count(*) FROM pulse.claim($worker, 199)");
    unlike(page($_), qr/are listed/, "$_ is whole") for '/workers', '/running', "/workers/$worker";
    is(pulse($node, 'workers')->{err}, '', 'and so is the table of workers');
    value($node, "SELECT pulse.register_worker('last'), pulse.register_worker('more');
        SELECT pulse.add_job('mail') FROM generate_series(1, 2);
        SELECT count(*) FROM pulse.claim($worker, 2)");
    like(page('/workers'), qr/Here at most 300 are listed/, 'of the workers, the page says');
    like(pulse($node, 'workers')->{err}, qr/^pulse: at most 300 are listed$/m, 'and the command');
    like(page($_), qr/Here at most 200 are listed/, "of the running jobs, $_ says")
      for '/running', "/workers/$worker";
};

done_testing();
