package Reference::Errors;

# generated/errors of each library: a class for each SQLSTATE of the schema, and sentences for the
# faults of a connection that a producer meets. What libraries say of errors stands here alone.
use strict;
use warnings;
use utf8;

# SQLSTATE, class, and a way out for an error of the server that has none, or a general one.
my @classes = (
    [qw(PU001 ClaimLost)], [qw(PU002 WorkerUnknown)], [qw(PU003 SettingsRefused)],
    [qw(PU004 OutOfRange)], [qw(PU005 NotFound)], [qw(PU006 InTransaction)],
    [qw(PU007 WrongIsolation)], [qw(PU008 ClaimsOff)], [qw(PU009 JobsWouldBeLost)],
    [qw(PU010 JobMustNotRun)],
    [ '42501', 'NotGranted',
        'The owner of the extension grants it: SELECT pulse.grant_producer(ROLE).' ],
    [ '25006', 'ReadOnly', 'Connect to the primary, or begin the transaction with READ WRITE.' ],
    [ '25P02', 'Aborted',
        'An earlier statement of this transaction has failed: ROLLBACK, and repeat all of it.' ]);

# Errors without a SQLSTATE of their own.
my %sentence = (
    NoExtension => 'The database has no pg_pulse.',
    OtherVersion => 'The database has a pg_pulse that this library is not made for.');

my $install = 'Install pg_pulse on the server and run CREATE EXTENSION pg_pulse in this database.';
my %update = map { $_->[0] =>
      "Install those files of pg_pulse on the server and run ALTER EXTENSION pg_pulse UPDATE, or "
      . "$_->[1] that the extension has." }
  [ node => 'npm install the version of pg-pulse' ],
  [ python => 'pip install the version of pg-pulse' ],
  [ ruby => 'take the version of the gem pg_pulse' ];

sub pages {
    return (
        'clients/node/lib/generated/errors.js' => node(),
        'clients/node/lib/generated/errors.d.ts' => node_types(),
        'clients/python/pg_pulse/generated/errors.py' => python(),
        'clients/ruby/lib/pg_pulse/generated/errors.rb' => ruby());
}

sub names { return ((map { $_->[1] } @classes), sort keys %sentence) }

# A text in lines, each in quotes, with a sign between them.
sub lines {
    my ($quote, $between, $indent, $text) = @_;
    my @lines = $text =~ /\G(.{1,80})(?:(?<= )|$)/g;
    return join "$between\n$indent", map { "$quote$_$quote" } @lines;
}

sub hints { return map { [ @$_[ 0, 2 ] ] } grep { $_->[2] } @classes }

sub node {
    my $text = "// Written by test/docs/generate; do not edit.\n'use strict'\n\n"
      . "// Of each SQLSTATE with a class the class's name.\nconst names = {\n"
      . join('', map { "  '$_->[0]': '$_->[1]',\n" } @classes) . "}\n\nconst hints = {\n"
      . join('', map { "  '$_->[0]':\n    " . lines(q('), ' +', '    ', $_->[1]) . ",\n" } hints())
      . "}\n\nconst install =\n  " . lines(q('), ' +', '  ', $install)
      . "\nconst update =\n  " . lines(q('), ' +', '  ', $update{node});
    return "$text\n\nmodule.exports = { names, hints, install, update }\n";
}

sub node_types {
    my %code = map { $_->[1] => "SQLSTATE $_->[0]" } @classes;
    my $text = "// Written by test/docs/generate; do not edit.\n\n"
      . "/** An error of the server. `code` is the SQLSTATE, `cause` the driver's error. */\n"
      . "export class PulseError extends Error {\n  readonly code: string\n"
      . "  readonly hint?: string\n  readonly detail?: string\n}\n";
    for (names()) {
        $text .= "/** " . ($code{$_} // $sentence{$_}) . " */\n"
          . "export class $_ extends PulseError {}\n";
    }
    return $text;
}

sub python {
    my $text = "# Written by test/docs/generate; do not edit.\n"
      . "from ..pulse_error import PulseError\n";
    $text .= qq(\n\nclass $_->[1](PulseError):\n    """SQLSTATE $_->[0]"""\n) for @classes;
    $text .= qq(\n\nclass $_(PulseError):\n    """$sentence{$_}"""\n) for sort keys %sentence;
    return $text . "\n\nCLASSES = {\n" . join('', map { qq(    "$_->[0]": $_->[1],\n) } @classes)
      . "}\nHINTS = {\n"
      . join('', map { qq(    "$_->[0]": \() . lines('"', '', ' ' x 13, $_->[1]) . "),\n" } hints())
      . "}\nINSTALL = (" . lines('"', '', ' ' x 11, $install)
      . ")\nUPDATE = (" . lines('"', '', ' ' x 10, $update{python}) . ")\n__all__ = [\n"
      . join('', map { qq(    "$_",\n) } sort(names())) . "]\n";
}

sub ruby {
    my $text = "# frozen_string_literal: true\n\n"
      . "# Written by test/docs/generate; do not edit.\nmodule PgPulse\n";
    $text .= "  # SQLSTATE $_->[0]\n  class $_->[1] < Error; end\n" for @classes;
    $text .= "  # $sentence{$_}\n  class $_ < Error; end\n" for sort keys %sentence;
    return $text . "\n  # What the library says of errors.\n  module Errors\n    CLASSES = {\n"
      . join(",\n", map { "      '$_->[0]' => $_->[1]" } @classes) . "\n    }.freeze\n"
      . "    HINTS = {\n" . join(",\n", map {
            "      '$_->[0]' =>\n        " . lines(q('), ' \\', '        ', $_->[1]) } hints())
      . "\n    }.freeze\n    INSTALL =\n      " . lines(q('), ' \\', '      ', $install)
      . "\n    UPDATE =\n      " . lines(q('), ' \\', '      ', $update{ruby}) . "\n  end\nend\n";
}

1;
