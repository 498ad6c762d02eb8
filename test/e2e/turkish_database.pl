# A database whose language says that the small form of I is no i.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;

my $node = start_server('main', settings => \%PATIENT);

SKIP: {
    my $made = $node->psql('postgres', q{CREATE DATABASE turkish TEMPLATE template0
        ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'tr-TR'}) == 0;
    skip 'a server without ICU', 1 if !$made;
    subtest 'errors are found in any case' => sub {
        my $ask = sub { return value($node, $_[0], 'turkish') };
        $ask->('CREATE EXTENSION pg_pulse');
        is($ask->(q{SELECT lower('I') = 'i'}), 'f', 'given a language of which I is not the big i');
        my $worker = $ask->(q{SELECT id FROM pulse.register_worker('ann')});
        $ask->('SELECT id FROM pulse.add_job($$a$$)');
        $ask->("SELECT pulse.fail(id, token, U&'T\\0130MEOUT: IO ERROR, HATASI', false)
                  FROM pulse.claim($worker)");
        for my $part ('io error', 'IO Error', "hatas\x{131}", 'hatasi', "t\x{130}meout") {
            my $escaped = join '', map { ord > 127 ? sprintf '\%04X', ord : $_ } split //, $part;
            is($ask->("SELECT count(*) FROM pulse.list_jobs(error => U&'$escaped')"), 1, $escaped);
            is($ask->("SELECT jobs FROM pulse.preview_operation('retry',
                         json_build_object('error', U&'$escaped'))"), 1, 'by a filter, too');
        }
        is($ask->(q{SELECT count(*) FROM pulse.list_jobs(error => 'no ink')}), 0, 'no other');
    };
}

expect_healthy($node);
done_testing;
