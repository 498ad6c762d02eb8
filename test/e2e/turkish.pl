# A program whose language says that the small form of I is no i.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Api;
use Pulse::Server;

my $node = start_server('main', settings => \%PATIENT);

SKIP: {
    my $locales = PostgreSQL::Test::Utils::tempdir('locales');
    skip 'no source of locales', 1
      if !run_log([ 'localedef', '-i', 'tr_TR', '-f', 'UTF-8', "$locales/tr_TR.UTF-8" ]);
    subtest 'an add with an Idempotency-Key is one add' => sub {
        local @ENV{qw(LOCPATH LC_ALL)} = ($locales, 'tr_TR.UTF-8');
        value($node, q{CREATE ROLE a_client; SELECT pulse.grant_producer('a_client')});
        my $api = Pulse::Api->start($node, 'serve', tokens => { client => 'a_client' });
        my @ids = map {
            $api->curl(POST => '/v1/jobs', as => 'client', body => { identifier => 'mail' },
                headers => { 'Idempotency-Key' => 'k1' })->{json}{id}
        } 1 .. 2;
        is($ids[1], $ids[0], 'by the name of the header in its usual case');
        $api->signal('TERM');
        is($api->wait_exit, 0, 'the server ends');
    };
}

expect_healthy($node);
done_testing;
