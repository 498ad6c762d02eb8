package Lint::Names;

# What files may be called, what may not be left undone, and the version that several files name.
use strict;
use warnings;
use JSON::PP;
use Lint::Tree qw(found slurp files sources is_of_lint without_comment);

sub check_names {
    for (grep { !m{^test/} } files()) {
        found($_, 'a junk drawer; name the file after its concept')
          if m{(?:^|/)(?:util|utils|common|misc|helpers)\.};
    }
    for my $file (grep { !is_of_lint($_) } sources()) {
        my $number = 0;
        for (slurp($file)) {
            $number++;
            found("$file:$number", 'left undone; do it, or leave it out')
              if /\b(?:TODO|FIXME|XXX)\b/;
        }
    }
    return;
}

# The files that comments and pages name are there. What stands for a name has capitals or a sigil.
sub check_files_named {
    my %is_there = map { ($_ => 1) } map { suffixes($_) } files();
    for my $file (grep { /\.(?:[ch]pp|sql|spec|pl|pm|md)$/ && !is_of_lint($_) } files()) {
        my $number = 0;
        for my $line (slurp($file)) {
            $number++;
            my $said = $file =~ /\.md$/ ? $line : comment_of($file, $line);
            while ($said =~ m{(?<![\w./*<\$-])((?:\w+/)*[a-z]\w*\.(?:cpp|hpp|sql|spec|pl|pm))\b}g) {
                found("$file:$number", "there is no $1; name the file that is meant")
                  if !$is_there{$1};
            }
        }
    }
    return;
}

# A file's name behind each of its folders.
sub suffixes {
    my @parts = split m{/}, $_[0];
    return map { join '/', @parts[ $_ .. $#parts ] } 0 .. $#parts;
}

sub comment_of {
    my ($file, $line) = @_;
    my $code = without_comment($file, $line);
    return substr $line, length $code;
}

sub check_versions {
    my ($version) = map { /^default_version = '(.*)'/ } slurp('extension/pg_pulse.control');
    my %pattern = (
        'META.json' => qr/^\s*"version": "\Q$version\E"/,
        'CHANGELOG.md' => qr/^## \[?\Q$version\E\b/,
        'extension/pg_pulse_citus.control' => qr/^default_version = '\Q$version\E'/,
        'extension/pg_pulse_graphile.control' => qr/^default_version = '\Q$version\E'/,
        'extension/pg_pulse_tap.control' => qr/^default_version = '\Q$version\E'/,
        'console/share/pulse.1' => qr/"pg_pulse \Q$version\E"/,
        'worker/share/pulse-worker.1' => qr/"pg_pulse \Q$version\E"/,
        'clients/node/package.json' => qr/^  "version": "\Q$version\E"/,
        'clients/ruby/lib/pg_pulse/version.rb' => qr/^  VERSION = '\Q$version\E'/,
        'clients/python/pyproject.toml' => qr/^version = "\Q$version\E"/,
        'clients/python/pg_pulse/errors.py' => qr/^VERSION = "\Q$version\E"/,
        'worker/CMakeLists.txt' => qr/\bVERSION \Q$version\E\b/,
    );
    for my $file (sort keys %pattern) {
        next if !-f $file && $file =~ m{^(?:console|worker)/};
        found($file, "does not name version $version, as the control file does; make them agree")
          if !grep { $_ =~ $pattern{$file} } slurp($file);
    }
    my $provided = JSON::PP->new->decode(join '', slurp('META.json'))->{provides};
    my %file_of = map { m{(\w+)\.control$} => $_ } glob 'extension/*.control';
    for my $name (sort keys %{ { %$provided, %file_of } }) {
        my $entry = $provided->{$name} // {};
        found('META.json', "provides $name otherwise than extension/ does")
          if ($entry->{file} // '') ne ($file_of{$name} // '') || !-f ($entry->{docfile} // '');
    }
    for (grep { /"version"/ } slurp('META.json')) {
        found('META.json', "$_; the control file says $version, and the specification 1.0.0")
          if !/"\Q$version\E"/ && !/"1\.0\.0"/;
    }
    return;
}

1;
