package Reference::Ruby;

# clients/ruby/lib/pg_pulse/generated: the functions as the library for Ruby calls them.
use strict;
use warnings;
use utf8;
use Reference::Calls qw(calls row_types);

use constant MAX_COLUMNS => 98;

my $mark = "# frozen_string_literal: true\n\n# Written by test/docs/generate; do not edit.\n";

sub pages {
    my ($catalogue, $groups) = @_;
    my @calls = calls($catalogue, $groups);
    my %rows = row_types($catalogue, @calls);
    my $text = "${mark}module PgPulse\n"
      . "  # Columns of the rows that functions give, with their types.\n"
      . "  ROWS = {\n"
      . join(",\n", map { "    $_: " . types('    ', @{ $rows{$_} }) } sort keys %rows)
      . "\n  }.freeze\n\n  # What each function takes and gives.\n"
      . "  FUNCTIONS = {\n" . join(",\n", map { description($_) } @calls) . "\n  }.freeze\n\n"
      . "  # A method for each function of the schema pulse that an application calls.\n"
      . "  module Functions\n" . join("\n", map { method($_) } @calls) . "  end\nend\n";
    return ('clients/ruby/lib/pg_pulse/generated/functions.rb' => $text);
}

sub quoted { return "'" . $_[0] =~ s/(['\\])/\\$1/gr . "'" }

# Pieces within brackets, on as few lines as they need.
sub wrapped {
    my ($indent, $open, $close, @pieces) = @_;
    my $line = join ', ', @pieces;
    return "$open$line$close" if length "$indent$open$line$close" < MAX_COLUMNS - 20;
    my @lines = ("$indent ");
    while (defined(my $piece = shift @pieces)) {
        $piece .= ',' if @pieces;
        push @lines, "$indent " if length("$lines[-1] $piece") > MAX_COLUMNS;
        $lines[-1] .= " $piece";
    }
    return $open =~ s/ $//r . "\n" . join("\n", @lines) . "\n$indent" . $close =~ s/^ //r;
}

sub types {
    my ($indent, @named) = @_;
    return wrapped($indent, '{ ', ' }', map { "$_->{name}: " . quoted($_->{type}) } @named);
}

sub comment {
    my ($text) = @_;
    my ($line, @lines) = ('    #');
    for my $word (split ' ', $text) {
        if (length("$line $word") > MAX_COLUMNS) { push @lines, $line; $line = '    #' }
        $line .= " $word";
    }
    return join("\n", @lines, $line) . "\n";
}

sub description {
    my ($call) = @_;
    my @members = ("gives: :$call->{gives}", 'takes: ' . types('      ', @{ $call->{takes} }));
    unshift @members, 'is_procedure: true' if $call->{is_procedure};
    if ($call->{row}) { push @members, "columns: ROWS[:$call->{row}]" }
    elsif ($call->{columns}) { push @members, 'columns: ' . types('      ', @{ $call->{columns} }) }
    elsif ($call->{type}) { push @members, 'type: ' . quoted($call->{type}) }
    return "    $call->{name}: {\n" . join(",\n", map { "      $_" } @members) . "\n    }";
}

# Arguments that must be given, and the payload, stand in order; the others are keywords.
sub method {
    my ($call) = @_;
    my %given = map { $_ => 1 } @{ $call->{given} };
    my @takes = map {
        my $name = $_->{name};
        !$given{$name} ? "$name: OMITTED" : $_->{is_optional} ? "$name = OMITTED" : $name
    } @{ $call->{takes} };
    my @values = map { "$_->{name}:" } @{ $call->{takes} };
    return comment($call->{comment})
      . '    ' . wrapped('    ', "def $call->{name}(", ')', 'db', @takes) . "\n"
      . '      ' . wrapped('      ', "call(db, :$call->{name}, {", '})', @values) . "\n    end\n";
}

1;
