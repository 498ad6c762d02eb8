# Jobs that are ready beside much that is not: the same drain in a clean database and in a laden
# one, by turns, one by one and in batches, and Graphile Worker's in a database laden alike.
package Bench::Laden;

use strict;
use warnings;

use Bench::Draining;
use Bench::Graphile;
use Bench::Portions;
use Bench::Pulse;
use Bench::Server;

use constant { BATCHED => 200_000, ONE_BY_ONE => 10_000, RIVALS => 20_000 };

# Options: pulse and graphile, which load a database of theirs and may return a session that stays;
# vacuum => 0 where that would find nothing to remove; rivals => how many jobs.
sub measure {
    my ($at, %load) = @_;
    Bench::Pulse::create($at, $_) for qw(clean laden);
    Bench::Graphile::create($at, 'graphile');
    my @held = grep { ref } $load{pulse}->($at, 'laden'), $load{graphile}->($at, 'graphile');
    my %laden = (vacuum => $load{vacuum} // 1);
    my @pairs = map {
        my %same = (system => 'pulse', batch => $_, jobs => $_ == 1 ? ONE_BY_ONE : BATCHED);
        [{ %same, name => "clean.$_", database => 'clean' },
         { %same, %laden, name => "laden.$_", database => 'laden' }];
    } (1, 100);
    my @rivals;
    my $runs = Bench::Portions::in_turn($at, \@pairs, sub {
        my ($repeat) = @_;
        my $run = Bench::Draining::drain($at, %laden, system => 'graphile',
                                         database => 'graphile', jobs => $load{rivals} // RIVALS);
        push @rivals, $run;
        printf "%d graphile %.2f s, start and stop %.2f s (load %s)\n", $repeat,
          @{$run}{qw(seconds startup load)};
    });
    Bench::Draining::rate(@rivals);
    Bench::Server::let_go($at, $_) for @held;
    return { %$runs, graphile => \@rivals };
}

sub rows {
    my ($name) = @_;
    return ((map { { name => "$name.$_", what => "batches of $_", ours => "laden.$_",
                     against => "clean.$_" } } (1, 100)),
            { name => "$name.rival", what => 'batches of 100; theirs of 500', ours => 'laden.100',
              against => 'graphile' });
}

sub labels {
    return ((map { ("clean.$_" => "ours, clean, $_", "laden.$_" => "ours, laden, $_") } (1, 100)),
            graphile => 'Graphile Worker, laden');
}

1;
