package Lint::Twins;

# A name of a function means one thing: it is defined in one file of its component only. Overloads
# beside each other are fine; so are methods, which their class names.
use strict;
use warnings;
use Lint::Tree qw(found slurp cpp_files);

sub check {
    for my $component ('extension', 'base|worker/src', 'console/src') {
        my %places;
        for my $file (grep { m{^(?:$component)/} } cpp_files()) {
            my $defined = functions_of($file);
            push @{ $places{$_} }, "$file:$defined->{$_}" for keys %{$defined};
        }
        for my $name (sort keys %places) {
            my ($first, @further) = @{ $places{$name} };
            found($first, "the function $name is defined in @{[ join ' and ', @further ]} too; "
                  . 'give each a name of its own, or let one do for both')
              if @further;
        }
    }
    return;
}

# Name to line of the free functions that a file defines. Rough, and enough with formatted sources:
# a definition begins in the first column, also in a namespace, and what it opens is a brace.
sub functions_of {
    my ($file) = @_;
    my (%defined, $head, $start);
    my $number = 0;
    for my $line (slurp($file)) {
        $number++;
        if ($line =~ /^[A-Za-z_\[]/) { ($head, $start) = ('', $number) }
        elsif (!defined $head || $line !~ /^\s+\S/) { undef $head }
        next if !defined $head;
        (my $code = $line) =~ s{//.*}{};
        $head .= "$code ";
        if ($code =~ /\{/) {
            my $name = function_name($head);
            $defined{$name} //= $start if defined $name;
            undef $head;
        }
        elsif ($code =~ /;\s*$/) { undef $head }
    }
    return \%defined;
}

# The name in a head up to its brace, if that is a function's and no class names it.
sub function_name {
    my ($head) = @_;
    return if $head =~ /^(?:class|struct|enum|union|namespace|using|typedef|static_assert)\b/;
    $head =~ s/"(?:[^"\\]|\\.)*"//g;
    $head =~ s/\[\[.*?\]\]//g;
    $head =~ s/__attribute__\(\(.*?\)\)//g;
    return $1 if $head =~ /^PULSE_FUNCTION\((\w+)\)/;
    $head =~ s/\{.*//s or return;
    return if $head =~ /;/ || $head =~ /\boperator\b/;
    1 while $head =~ s/<[^<>()]*(?:\([^()]*\)[^<>()]*)*>//;
    my ($before, $name) = $head =~ /^([^(=]*?)(\w+)\s*\(/ or return;
    return if $before =~ /::\s*$|~$/ || $before !~ /\w/;
    return $name;
}

1;
