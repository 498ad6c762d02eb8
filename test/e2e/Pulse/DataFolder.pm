# A server's data folder: a copy of what initdb has made once (test/support/suite), which takes a
# tenth of initdb's time. Each copy has a system identifier of its own, as a server has.
package Pulse::DataFolder;

use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use Time::HiRes qw(gettimeofday);

use PostgreSQL::Test::Utils ();


use constant {
    CRC_32C => 0x82F63B78,
    CONTROL_SIZE => 512,         # more than any version has of it; the file is longer
    WAL_IDENTIFIER => 24,        # where the first page of a segment has it
};

my $copies = 0;

sub copy_template {
    my ($folder) = @_;
    my $template = $ENV{PULSE_TEMPLATE} // croak 'no template: test/support/suite names one';
    PostgreSQL::Test::Utils::system_or_bail('cp', '-a', "$template/.", $folder);
    my $identifier = new_identifier();
    my $control = "$folder/global/pg_control";
    overwrite($control, 0, with_identifier(beginning($control, CONTROL_SIZE), $identifier));
    my ($segment, @more) = grep { /[0-9A-F]{24}$/ } glob "$folder/pg_wal/*";
    croak "$template is no new folder" if @more;
    overwrite($segment, WAL_IDENTIFIER, $identifier);
    return;
}

# As the server makes one: the time, and who.
sub new_identifier {
    my ($seconds, $microseconds) = gettimeofday;
    $copies++;
    return pack 'Q', $seconds << 32 | $microseconds << 12 | ($$ + ($copies << 6)) & 0xFFF;
}

# The checksum stands behind what it covers, in each version at another place.
sub with_identifier {
    my ($old, $identifier) = @_;
    my $new = $identifier . substr $old, 8;
    my ($was, $is) = (0xFFFFFFFF, 0xFFFFFFFF);
    for (my $at = 0; $at < length $old; $at += 4) {
        return substr($new, 0, $at) . pack('L', $is ^ 0xFFFFFFFF)
          if $at > 8 && unpack('L', substr $old, $at, 4) == ($was ^ 0xFFFFFFFF);
        $was = checksum($was, substr $old, $at, 4);
        $is = checksum($is, substr $new, $at, 4);
    }
    croak 'no checksum in pg_control';
}

sub checksum {
    my ($sum, $bytes) = @_;
    for my $byte (unpack 'C*', $bytes) {
        $sum ^= $byte;
        $sum = $sum & 1 ? $sum >> 1 ^ CRC_32C : $sum >> 1 for 1 .. 8;
    }
    return $sum;
}

sub beginning {
    my ($path, $length) = @_;
    open my $file, '<:raw', $path or croak "$path: $!";
    read($file, my $bytes, $length) == $length or croak "$path: $!";
    close $file;
    return $bytes;
}

sub overwrite {
    my ($path, $at, $bytes) = @_;
    open my $file, '+<:raw', $path or croak "$path: $!";
    seek $file, $at, 0 or croak "$path: $!";
    print {$file} $bytes;
    close $file or croak "$path: $!";
    return;
}

1;
