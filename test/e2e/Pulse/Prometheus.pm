# Reads Prometheus' text format as strictly as its own reader does, and complains of what it would
# not take, or what promtool would call bad style.
package Pulse::Prometheus;

use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use Scalar::Util qw(looks_like_number);

my $name = qr/[a-zA-Z_:][a-zA-Z0-9_:]*/;
my $label = qr/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"/;
my %suffixes = (
    counter => [''], gauge => [''],
    histogram => [ '_bucket', '_sum', '_count' ]);

# The samples as { name => { "label=value,…" => number } }, labels in order of their names.
sub parse {
    my ($class, $text) = @_;
    croak 'the last line has no end' if $text !~ /\n\z/;
    my $self = bless { type => {}, samples => {} }, $class;
    my ($family, %help);
    for my $line (split /\n/, $text) {
        if (my ($of, $words) = $line =~ /^# HELP ($name) (.+)$/) {
            croak "two helps for $of" if $help{$of}++;
            croak "help of $of: bad escape" if $words =~ /\\(?![\\n])/;
        } elsif (my ($typed, $type) = $line =~ /^# TYPE ($name) (\w+)$/) {
            croak "two types for $typed" if $self->{type}{$typed};
            croak "$typed has no help" if !$help{$typed};
            croak "$typed: no such type $type" if !$suffixes{$type};
            croak "$typed: a counter ends with _total"
              if ($type eq 'counter') != ($typed =~ /_total$/);
            $family = $typed;
            $self->{type}{$typed} = $type;
        } else {
            $self->_take_sample($family, $line);
        }
    }
    $self->_check_histogram($_)
      for grep { $self->{type}{$_} eq 'histogram' } keys %{ $self->{type} };
    return $self;
}

sub _take_sample {
    my ($self, $family, $line) = @_;
    my ($of, $labels, $value) = $line =~ /^($name)(?:\{(.*)\})? (\S+)$/
      or croak "no sample: $line";
    my $is_ours = grep { $of eq ($family // '') . $_ }
      @{ $suffixes{ $self->{type}{ $family // '' } // '' } // [] };
    croak "$of stands beneath " . ($family // 'nothing') if !$is_ours;
    croak "no number: $line" if !looks_like_number($value);
    croak "a counter below zero: $line" if $self->{type}{$family} eq 'counter' && $value < 0;
    my %labels;
    if (defined $labels && $labels ne '') {
        croak "bad labels: $line" if $labels !~ /^$label(?:,$label)*$/;
        while ($labels =~ /$label/g) {
            croak "$1 stands twice: $line" if exists $labels{$1};
            $labels{$1} = $2;
        }
    }
    my $key = join ',', map { "$_=$labels{$_}" } sort keys %labels;
    croak "stands twice: $line" if exists $self->{samples}{$of}{$key};
    $self->{samples}{$of}{$key} = $value;
    return;
}

# Buckets grow, the last is for everything, and it agrees with the count.
sub _check_histogram {
    my ($self, $family) = @_;
    my %buckets;
    for my $key (keys %{ $self->{samples}{"${family}_bucket"} }) {
        my ($before, $limit, $after) = $key =~ /^(.*?),?\ble=([^,]+),?(.*)$/
          or croak "$family: a bucket without limit: $key";
        my $series = join ',', grep { $_ ne '' } $before, $after;
        $buckets{$series}{ $limit eq '+Inf' ? 9**9**9 : $limit } =
          $self->{samples}{"${family}_bucket"}{$key};
    }
    for my $series (keys %buckets) {
        my @limits = sort { $a <=> $b } keys %{ $buckets{$series} };
        croak "$family $series: no bucket for everything" if $limits[-1] != 9**9**9;
        my $last = 0;
        for my $count (map { $buckets{$series}{$_} } @limits) {
            croak "$family $series: buckets shrink" if $count < $last;
            $last = $count;
        }
        croak "$family $series: its count differs"
          if $last != $self->value("${family}_count", $series);
        croak "$family $series: no sum" if !defined $self->value("${family}_sum", $series);
    }
    return;
}

# Nothing if there is no such sample.
sub value {
    my ($self, $of, $labels) = @_;
    return $self->{samples}{$of}{ $labels // '' };
}

sub names { return sort keys %{ $_[0]{type} } }

1;
